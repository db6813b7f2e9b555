// One session, live: its state, what can be done to it, its conversation and its timeline.

import { ActionBar, ActionDialog, forkAt, PendingCalls, perform } from "./actions.js";
import { ApiError, control, follow, get, isPermanent, queryString, sleep } from "./api.js";
import { cacheShare, grouped, money, percent, sessionHref, totalTokens } from "./format.js";
import { Panes } from "./session-body.js";
import { EMPTY, extend } from "./timeline.js";
import { Badge, Failure, html, perFrame, Text, useCallback, useEffect, useMemo } from "./ui.js";
import { usePoll, useRef, useState } from "./ui.js";

const PAGE = 500;

/** Requests about a session. Those of the caller's own tenant need no role; others go through the control channel. */
export function source(caller, tenant, name) {
  const key = `${tenant}/${name}`;
  const path = `/api/sessions/${encodeURIComponent(name)}`;
  const isAdmin = caller.role === "admin";
  const inspect = async () => (await control("inspect", { session: key })).session;
  if (tenant !== caller.tenant) {
    const refusal = new ApiError(403, "Only an administrator can open a session of another tenant.");
    return {
      key,
      inspect: isAdmin ? inspect : () => Promise.reject(refusal),
      page: async (after, limit) => (await control("tail", { session: key, after, limit })).events,
      stream: (after) => `/api/control/watch${queryString({ session: key, after })}`,
    };
  }
  return {
    key,
    inspect: isAdmin ? inspect : () => get(path),
    page: async (after, limit) => (await get(`${path}/events${queryString({ after, limit })}`)).events,
    stream: (after) => `${path}/events${queryString({ after, frames: 1 })}`,
    whole: (seq) => get(`${path}/events/${seq}/body`),
    tree: async (query) => (await get(`${path}/queries/${query}`)).sub_agents,
  };
}

const bytes = (text) => new TextEncoder().encode(text).length;

/** The text of a reply as it arrives. Frames may be missing; those of a new attempt replace the earlier ones. */
function grown(live, frame) {
  const isNext = live?.turn === frame.turn && live.attempt === frame.attempt && live.query === frame.query;
  if (isNext && frame.offset < live.end) return live;
  const before = isNext ? live.text + (frame.offset > live.end ? " … " : "") : frame.offset ? "… " : "";
  return { ...frame, text: before + frame.text, end: frame.offset + bytes(frame.text) };
}

/** The log of a session, followed live: the last events first, earlier ones by `earlier()`. */
export function useLog(from) {
  const log = useRef({ events: [], model: EMPTY, last: 0, pending: [], live: null, progress: {} }).current;
  const [shown, show] = useState({ model: EMPTY, live: null, progress: log.progress });
  const [error, setError] = useState(null);
  const [attempt, setAttempt] = useState(0);
  /** Reads what follows the last event, where a stream misses some or stands still. */
  const catchUp = async () => {
    log.isBehind = true;
    if (log.isReading) return;
    log.isReading = true;
    while (log.isBehind) {
      log.isBehind = false;
      const events = await from.page(log.last, PAGE).catch(() => []);
      events.forEach(log.take);
      if (events.length) log.isBehind = true;
    }
    log.isReading = false;
  };
  useEffect(() => {
    const end = new AbortController();
    const draw = perFrame(() => {
      log.events.push(...log.pending);
      log.model = extend(log.model, log.pending.splice(0));
      show({ model: log.model, live: log.live, progress: log.progress });
    });
    log.take = (event) => {
      if (event.seq <= log.last) return;
      log.last = event.seq;
      if (event.turn === log.live?.turn && ["turn.replied", "turn.restarted"].includes(event.type)) log.live = null;
      if (event.type === "query.finished") log.live = null;
      log.pending.push(event);
      draw();
    };
    // The control channel wraps an event as `{seen, tenant, event}`, and gives the reason of the end as `{seen, why}`.
    const onStreamEvent = ({ event: type, data }) => {
      const event = data.event ?? data;
      if (type === "frame") log.live = grown(log.live, data);
      else if (type === "progress") log.progress = { ...log.progress, [data.call]: data };
      else if (type === "end") setError({ message: data.why ?? data.error.message });
      else if (type === "gap" || type === "lost" || event.seq > log.last + 1) catchUp();
      else log.take(event);
      draw();
    };
    const start = async () => {
      while (!end.signal.aborted) {
        try {
          const { last } = await from.inspect();
          log.last = Math.max(0, last - PAGE);
          (await from.page(log.last, PAGE)).forEach(log.take);
          setError(null);
          return follow(() => from.stream(log.last), { event: onStreamEvent, state: setError }, end.signal);
        } catch (failure) {
          setError(failure);
          if (isPermanent(failure)) return;
          await sleep(2_000, end.signal);
        }
      }
    };
    start();
    return () => end.abort();
  }, [attempt]);
  const readEarlier = async () => {
    const { first } = log.model;
    const after = Math.max(0, first - 1 - PAGE);
    const older = (await from.page(after, first - 1 - after)).filter(({ seq }) => seq < first);
    log.events.unshift(...older);
    log.model = extend(EMPTY, log.events);
    show({ model: log.model, live: log.live, progress: log.progress });
  };
  const earlier = () => {
    log.earlier ??= readEarlier().finally(() => (log.earlier = null));
    return log.earlier;
  };
  /** Starts again, such as after the first message to a session that did not exist. */
  const restart = () => setAttempt((number) => number + 1);
  return { ...shown, error, earlier, catchUp, restart };
}

function Header({ tenant, own, name, view, model }) {
  const total = view?.total ?? view?.usage;
  const spent = totalTokens(total);
  const share = total ? cacheShare(total) : null;
  const link = (other) => html`<a href=${sessionHref(tenant, other)}>${other}</a>`;
  return html`<header>
    <div class="row"><h1><span class="soft">${tenant === own ? "" : `${tenant}/`}</span><${Text}>${name}</></h1>
      ${view && html`<${Badge} of=${view.state} />`}</div>
    <p class="soft">
      Profile ${view?.profile ?? model.profile ?? "unknown"}
      ${spent > 0 && ` · ${grouped(spent)} tokens, ${total.cost === null ? "cost unknown" : money(total.cost)}`}
      ${share !== null && ` · ${percent(share)} read from the provider's cache`}
      ${view?.waiting > 0 && ` · ${view.waiting} more in the inbox`}
      ${model.parent && html` · sub-agent of ${link(model.parent.session)}`}
      ${model.fork && html` · fork of ${link(model.fork)}`}
    </p>
    ${view?.quarantine && html`<p class="failure">Quarantined: <${Text}>${view.quarantine}</></p>`}
  </header>`;
}

/** One session, live. `query` may have `query` and `event`, to point to one. */
export function Session({ caller, tenant, name, query: asked = {} }) {
  const from = useMemo(() => source(caller, tenant, name), []);
  const isAdmin = caller.role === "admin";
  const { model, live, progress, error, earlier, catchUp } = useLog(from);
  const [revision, setRevision] = useState(0);
  const refresh = () => setRevision((n) => n + 1);
  const [view, down] = usePoll(from.inspect, 5_000, [revision]);
  const [selected, select] = useState(Number(asked.query) || null);
  const [action, setAction] = useState(null);
  const [notice, setNotice] = useState(null);
  const [failure, setFailure] = useState(null);

  useEffect(() => {
    if (!model.last) return;
    const timer = setTimeout(refresh, 250);
    return () => clearTimeout(timer);
  }, [model.last]);
  useEffect(() => {
    if (model.last > 0 && view?.last > model.last) catchUp();
  }, [view]);
  useEffect(() => {
    const isThere = model.queries.some(({ id, accepted }) => id === selected && accepted);
    if (selected && !isThere && model.first > 1) earlier().catch(setFailure);
  }, [selected, model.first]);

  const session = { name, view, lastQuery: model.queries.at(-1) };
  const done = (action, answer) => {
    setNotice(action.notice ?? "Done.");
    refresh();
    if (action.verb === "fork") location.hash = sessionHref(tenant, answer.session.split("/").at(-1));
    if (answer.query) select(answer.query);
  };
  const onAction = (action) => {
    setNotice(null);
    setFailure(null);
    if (action.description || action.fields) setAction(action);
    else perform(action, from.key).then((answer) => done(action, answer), setFailure);
  };
  const close = (answer) => {
    setAction(null);
    if (answer) done(action, answer);
  };
  const act = useMemo(
    () => ({
      whole: from.whole, tree: from.tree, href: (child) => sessionHref(tenant, child),
      fork: isAdmin && ((query, turn) => onAction(forkAt({ name }, query, turn))),
    }), []);
  const onSelect = useCallback((id) => {
    select(id);
    document.querySelector(".timeline")?.scrollIntoView({ block: "nearest" });
  }, []);
  const broken = error ?? down;

  return html`<div class="session">
    <div class="row spread top">
      <${Header} tenant=${tenant} own=${caller.tenant} name=${name} view=${view} model=${model} />
      ${isAdmin && view && html`<${ActionBar} session=${session} onAction=${onAction} />`}
    </div>
    ${broken && html`<p class="failure" role="alert"><${Text}>${broken.message}</>${
      broken.status ? "" : " Reconnecting; nothing is lost."}</p>`}
    <${Failure} error=${failure} />
    <p class="notice" role="status">${notice}</p>
    ${isAdmin && view && html`<${PendingCalls} view=${view} onAction=${onAction} />`}
    ${model.first > 1 && html`<button onClick=${() => earlier().catch(setFailure)}>Load earlier events</button>`}
    ${model.last > 0 && html`<${Panes} model=${model} selected=${selected} onSelect=${onSelect} live=${live}
      progress=${progress} view=${view} pointed=${Number(asked.event) || null} act=${act} />`}
    ${action && html`<${ActionDialog} action=${action} session=${from.key} close=${close} />`}
  </div>`;
}
