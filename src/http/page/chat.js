// Conversations for people: the answer as it arrives, tool work folded away, approvals in their place.

import { ActionDialog, PendingCalls, perform } from "./actions.js";
import { ApiError, get, isPermanent, post, queryString, sleep } from "./api.js";
import { age, grouped, sessionHref, words } from "./format.js";
import { Markdown } from "./markdown.js";
import { EventText } from "./session-body.js";
import { source, useLog } from "./session.js";
import { remainder } from "./timeline.js";
import { Badge, Failure, html, Text, useEffect, useMemo, usePoll, useRef, useState } from "./ui.js";
import { textOf } from "./why.js";

const address = (name) => `#/chat/${encodeURIComponent(name)}`;

/** Submits a message once, however often the server goes away meanwhile. */
async function submit(path, text) {
  const headers = { "idempotency-key": crypto.getRandomValues(new Uint32Array(4)).join("-") };
  for (;;) {
    try {
      return await post(`${path}/messages`, { text }, { headers });
    } catch (error) {
      const isAway = error instanceof ApiError && [0, 502, 503].includes(error.status);
      if (!isAway) throw error;
      await sleep(2_000);
    }
  }
}

/** The tool results that mention the cited file. */
async function passages({ items }, citation, whole) {
  const [, path] = /^(.*?):\d/.exec(citation);
  const events = items.flatMap((item) => (item.rows ?? []).flatMap((row) => row.events));
  const results = events.filter(({ type }) => type === "tool.finished").map(async (event) => {
    const { payload } = event.payload.content?.ref ? await whole(event.seq) : event;
    return textOf(payload.content);
  });
  return (await Promise.all(results)).filter((text) => text.includes(path));
}

function Passage({ citation, texts, close }) {
  const dialog = useRef();
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog class="passage" ref=${dialog} onClose=${close} aria-labelledby="passage">
    <h2 id="passage"><${Text}>${citation}</></h2>
    ${texts.length === 0 && html`<p class="soft">No tool of this question has shown it.</p>`}
    ${texts.map((text) => html`<pre tabindex="0"><${Text}>${text}</></pre>`)}
    <form method="dialog"><button autofocus>Close</button></form>
  </dialog>`;
}

/** The tool calls of a turn, folded. */
function Tools({ rows, act }) {
  const calls = rows.filter(({ call }) => call);
  if (!calls.length) return null;
  const names = [...new Set(calls.map(({ call }) => call.name))].join(", ");
  return html`<details class="tools">
    <summary>${calls.length} tool ${calls.length === 1 ? "call" : "calls"}: <${Text}>${names}</></summary>
    ${calls.map((row) => html`<div key=${row.seq}>
      <p><code><${Text}>${`${row.call.name} ${textOf(row.call.arguments)}`}</></code></p>
      ${row.events.at(-1).payload.content === undefined
        ? html`<p class="soft">Still running.</p>`
        : html`<div class="result" tabindex="0">
            <${EventText} event=${row.events.at(-1)} field="content" act=${act} /></div>`}
    </div>`)}
  </details>`;
}

function ChatTurn({ turn, act, onCite }) {
  const events = turn.rows.flatMap((row) => row.events);
  const reply = turn.mode !== "signal" && turn.replied?.text && events.findLast(({ type }) => type === "turn.replied");
  return html`${reply &&
    html`<${EventText} key=${reply.seq} event=${reply} field="text" act=${act} markdown onCite=${onCite} isOpen />`}
    <${Tools} rows=${turn.rows} act=${act} />`;
}

function ChatExchange({ query, live, waits, act, onCite }) {
  const { accepted, items, end } = query;
  const open = (citation) => onCite(query, citation);
  const rest = end && remainder(query);
  const isGrowing = live?.query === query.id && !end;
  const isUnanswered = end && end.outcome !== "answered";
  return html`<article class="exchange" aria-label=${`Question ${query.id}`}>
    ${accepted && html`<div class="bubble">
      <${EventText} event=${{ seq: query.seq, payload: accepted }} field="text" act=${act} isOpen /></div>`}
    ${items.filter((item) => item.rows)
      .map((turn) => html`<${ChatTurn} key=${turn.turn} turn=${turn} act=${act} onCite=${open} />`)}
    ${isGrowing && html`<div class="growing" aria-busy="true"><${Markdown} text=${live.text} /></div>`}
    ${rest && html`<${Markdown} text=${rest} onCite=${open} />`}
    ${!end && !isGrowing && !waits && html`<p class="soft" role="status">Working…</p>`}
    ${isUnanswered && html`<p class="row soft"><${Badge} of=${end.outcome} />
      <${Text}>${words(textOf(end.reason ?? ""))}</></p>`}
  </article>`;
}

function Composer({ isRunning, onSend, onStop, error }) {
  const input = useRef();
  const [isSending, setSending] = useState(false);
  const [failure, setFailure] = useState(null);
  useEffect(() => input.current.focus(), []);
  const send = async (event) => {
    event.preventDefault();
    const text = input.current.value.trim();
    if (!text || isSending) return;
    setSending(true);
    setFailure(null);
    try {
      await onSend(text);
      if (input.current) input.current.value = "";
    } catch (error) {
      setFailure(error); // what could not be sent stays in the field
    }
    setSending(false);
    input.current?.focus();
  };
  const typed = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
  };
  return html`<form class="composer" onSubmit=${send}>
    <${Failure} error=${failure ?? error} />
    <div class="row">
      <textarea ref=${input} rows="3" aria-label="Message" placeholder="Ask a question" onKeyDown=${typed}
        readonly=${isSending}></textarea>
      <div class="buttons">
        ${isRunning && html`<button type="button" onClick=${onStop}>Stop</button>`}
        <button class="primary" disabled=${isSending}>${isSending ? "Sending…" : "Send"}</button>
      </div>
    </div>
  </form>`;
}

/** A conversation, live. */
function Thread({ caller, name }) {
  const from = useMemo(() => source(caller, caller.tenant, name), []);
  const isAdmin = caller.role === "admin";
  const { model, live, error, restart } = useLog(from);
  const [view] = usePoll(from.inspect, 3_000, [model.last]);
  const [passage, setPassage] = useState(null);
  const [action, setAction] = useState(null);
  const [failure, setFailure] = useState(null);
  const bottom = useRef();
  const isAtEnd = useRef(true);
  useEffect(() => {
    const look = () => {
      isAtEnd.current = innerHeight + scrollY > document.documentElement.scrollHeight - 80;
    };
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, []);
  useEffect(() => {
    if (isAtEnd.current) bottom.current?.scrollIntoView({ block: "end" });
  }, [model.last, live]);

  const path = `/api/sessions/${encodeURIComponent(name)}`;
  const running = model.queries.find(({ end }) => !end);
  const send = async (text) => {
    setFailure(null);
    isAtEnd.current = true;
    await submit(path, text);
    if (model.last === 0) restart(); // the first message to a session that did not exist
  };
  const cite = (query, citation) =>
    passages(query, citation, from.whole).then((texts) => setPassage({ citation, texts }), setFailure);
  const stop = () => post(`${path}/queries/${running.id}/cancel`, {}).catch(setFailure);
  const onAction = (action) => {
    if (action.description || action.fields) setAction(action);
    else perform(action, from.key).catch(setFailure);
  };
  return html`<div class="talk">
    <h1><${Text}>${name}</></h1>
    <p class="soft"><a href=${sessionHref(caller.tenant, name)}>Timeline</a>
      ${view && ` · ${grouped(model.queries.length)} ${model.queries.length === 1 ? "question" : "questions"}`}</p>
    ${model.queries.map((query) => html`<${ChatExchange} key=${query.id} query=${query} live=${live}
      waits=${query.id === view?.query && ["approval", "grant"].includes(view.state)} act=${from} onCite=${cite} />`)}
    ${isAdmin && view && html`<${PendingCalls} view=${view} onAction=${onAction} />`}
    ${!isAdmin && ["approval", "grant"].includes(view?.state) && html`<p class="soft" role="status">
      Waiting for an operator to ${view.state === "grant" ? "grant a tool" : "approve a call"}.</p>`}
    ${error && error.status !== 404 && html`<p class="failure" role="alert"><${Text}>${error.message}</>${
      isPermanent(error) ? "" : " Reconnecting…"}</p>`}
    <${Composer} isRunning=${Boolean(running)} onSend=${send} onStop=${stop} error=${failure} />
    <div ref=${bottom}></div>
    ${passage && html`<${Passage} ...${passage} close=${() => setPassage(null)} />`}
    ${action && html`<${ActionDialog} action=${action} session=${from.key} close=${() => setAction(null)} />`}
  </div>`;
}

/** Begins a conversation with its first message. */
function NewConversation({ caller }) {
  const [models] = usePoll(() => get("/v1/models"), 60_000);
  const profile = useRef();
  const isMounted = useRef(true);
  useEffect(() => () => (isMounted.current = false), []);
  const profiles = models?.data.map(({ id }) => id) ?? [];
  const send = async (text) => {
    const chosen = profile.current?.value;
    const { session } = await post("/api/sessions", chosen ? { profile: chosen } : {});
    await submit(`/api/sessions/${session}`, text);
    if (isMounted.current) location.hash = address(session);
  };
  return html`<div class="talk">
    <h1>New conversation</h1>
    <p class="soft">Signed in as <${Text}>${caller.name}</>, tenant <${Text}>${caller.tenant}</>. Conversations are
      saved, so you can return to them.</p>
    ${profiles.length > 1 && html`<label><span>Profile</span>
      <select ref=${profile}>${profiles.map((id) => html`<option key=${id}>${id}</option>`)}</select></label>`}
    <${Composer} onSend=${send} />
  </div>`;
}

/** The caller's conversations, and one of them or a new one. */
export function Chat({ caller, name }) {
  const wanted = queryString({ sort: "updated", limit: 50, tenant: caller.tenant });
  const [page] = usePoll((signal) => get(`/api/activity${wanted}`, { signal }), 3_000);
  // An administrator's list also has the sessions of sub-agents.
  const conversations = page?.sessions.filter(({ session }) => !session.startsWith("~"));
  return html`<div class="chat">
    <nav aria-label="Conversations">
      <a class="button" href="#/chat">New conversation</a>
      ${conversations?.map((one) => html`<a key=${one.session} href=${address(one.session)}
        aria-current=${one.session === name ? "page" : undefined}>
        <${Text}>${one.question ?? one.session}</><span class="soft">${age(one.updated)}</span></a>`)}
    </nav>
    ${name ? html`<${Thread} key=${name} caller=${caller} name=${name} />`
      : html`<${NewConversation} caller=${caller} />`}
  </div>`;
}
