// A conversation and its timeline, drawn from a model alone: no requests and no actions of its own.

import { cost, date, grouped, percent, totalTokens, visible, words } from "./format.js";
import { Markdown } from "./markdown.js";
import { EMPTY, extend, remainder } from "./timeline.js";
import { Badge, html, Text, useEffect, useMemo, useRef, useState, When } from "./ui.js";
import { brief, pretty, textOf } from "./why.js";

// What the surrounding view offers: `whole(seq)`, `fork(query, turn)`, `href(session)`, `tree(query)`. A report: none.
const NONE = {};

/** A text of an event; a long one is loaded on request, or at once with `isOpen`. */
export function EventText({ event, field, act, markdown, onCite, isOpen }) {
  const [whole, setWhole] = useState(null);
  const value = (whole ?? event).payload[field];
  const show = () => act.whole(event.seq).then(setWhole, () => {});
  useEffect(() => {
    if (isOpen && value?.ref) show();
  }, []);
  if (value?.ref) {
    return html`<p class="soft">Text of ${grouped(value.ref.bytes)} bytes.${" "}
      ${act.whole && html`<button class="plain" onClick=${show}>Show</button>`}</p>`;
  }
  if (markdown) return html`<${Markdown} text=${value} onCite=${onCite} />`;
  return html`<p class="said"><${Text}>${value}</></p>`;
}

const WAITS = { approval: "Waiting for approval.", grant: "Waiting for a tool.", paused: "Paused." };

function Exchange({ query, isSelected, onSelect, live, state, act }) {
  const { id, accepted, items, end } = query;
  const all = items.flatMap((item) => {
    const events = item.rows?.flatMap((row) => row.events) ?? item.events;
    return events.map((event) => ({ event, mode: item.mode }));
  });
  const texts = all.map(({ event, mode }) => {
    if (event.type === "control.steered") {
      return html`<div class="bubble" key=${event.seq}><h3>Steered by ${event.payload.by}</h3>
        <${EventText} event=${event} field="text" act=${act} /></div>`;
    }
    if (event.type !== "turn.replied" || mode === "signal" || !textOf(event.payload.text)) return null;
    return html`<div class="reply" key=${event.seq}>
      <${EventText} event=${event} field="text" act=${act} markdown /></div>`;
  });
  const rest = end && remainder(query);
  const reason = end && [words(textOf(end.reason ?? "")), textOf(end.detail)].filter(Boolean).join(": ");
  return html`<article class="exchange" aria-label=${`Question ${id}`}>
    <div class="row spread"><h2>Question ${id} <span class="soft">· <${When} at=${query.at} /></span></h2>
      <button class="plain" aria-pressed=${isSelected} onClick=${() => onSelect(id)}>
        Timeline<span class="visually-hidden"> of question ${id}</span></button></div>
    ${accepted
      ? html`<div class="bubble">
          <${EventText} event=${{ seq: query.seq, payload: accepted }} field="text" act=${act} /></div>`
      : html`<p class="soft">This question begins before the events shown.</p>`}
    ${texts}
    ${live && html`<div class="reply growing" aria-busy="true"><p class="said"><${Text}>${live.text}</></p></div>`}
    ${rest && html`<div class="reply"><${Markdown} text=${rest} /></div>`}
    ${end
      ? html`<p class="row soft"><${Badge} of=${end.outcome} /><span><${Text}>${reason}</></span>
          ${end.unverified && html`<span title="No call found the sources that it counts.">unverified</span>`}</p>`
      : html`<p class="soft">
          ${live ? "Answering…" : WAITS[state] ?? (items.length > 1 ? "Working…" : "Queued.")}</p>`}
  </article>`;
}

function Conversation({ model, selected, onSelect, live, view, act }) {
  return html`<section class="conversation panel" aria-label="Conversation">
    ${model.queries.length === 0 && html`<p class="soft">No question yet.</p>`}
    ${model.queries.map((query) => {
      const growing = live?.query === query.id && !query.end ? live : null;
      return html`<${Memo} key=${query.id} of=${Exchange} query=${query} isSelected=${query.id === selected}
        onSelect=${onSelect} live=${growing} state=${query.id === view?.query && view.state} act=${act} />`;
    })}
  </section>`;
}

/** Draws `of` again only if one of its properties is another one. */
function Memo({ of, ...properties }) {
  return useMemo(() => html`<${of} ...${properties} />`, [of, ...Object.values(properties)]);
}

/** What a row shows on demand: titles and texts. */
function sections(events) {
  const [{ type, payload: p }] = events;
  const found = [];
  if (/^tool\.re[qf]/.test(type)) found.push(["Arguments", pretty(p.arguments)]);
  if (type.startsWith("tool.")) found.push(["Result", textOf(events.at(-1).payload.content)]);
  if (type.startsWith("signal.")) found.push(["Raw block", textOf(p.raw_xml)]);
  if (type === "query.classified") {
    const { segments_included: names, token_estimate: estimate, hash } = p.prompt;
    found.push(["Prompt segments", names.join("\n")], ["Estimate", `${grouped(estimate)} tokens\nSHA-256 ${hash}`]);
  }
  if (type === "turn.replied") found.push(["Reply", p.message.parts.map(({ text }) => textOf(text)).join("")]);
  if (type === "turn.started" && p.guidance?.length) found.push(["Guidance", p.guidance.map(textOf).join("\n\n")]);
  if (type === "fallback.triggered" && p.hint) found.push(["Hint", textOf(p.hint)]);
  if (type === "delegation.finished") found.push(["Answer", textOf(p.answer)]);
  if (type === "budget.context.compacted") found.push([p.cut ? "Note" : "Summary", textOf(p.summary)]);
  return found.filter(([, text]) => text);
}

function EventDetails({ row, act }) {
  const [whole, setWhole] = useState(null);
  const events = whole ?? row.events;
  // The API cuts long texts to `{ref}`.
  const isCut = !whole && act.whole && JSON.stringify(events).includes('{"ref":{"seq":');
  const load = async () => setWhole(await Promise.all(row.events.map(({ seq }) => act.whole(seq))));
  return html`<div class="inside">
    ${sections(events).map(([title, text]) => html`<h3>${title}</h3><pre tabindex="0"><${Text}>${text}</></pre>`)}
    ${events.map((event) => html`<details><summary>Event ${event.seq}, ${event.type}</summary>
      <pre tabindex="0"><${Text}>${JSON.stringify(event, null, 2)}</></pre></details>`)}
    ${isCut && html`<button class="plain" onClick=${load}>Load full text</button>`}
  </div>`;
}

const offset = (ms) => (ms < 100_000 ? `+${(ms / 1_000).toFixed(1)} s` : `+${Math.round(ms / 60_000)} min`);

function Row({ row, pointed, progress, act }) {
  const isPointed = row.events.some(({ seq }) => seq === pointed);
  const [open, setOpen] = useState(isPointed);
  const element = useRef();
  useEffect(() => {
    if (isPointed) element.current.scrollIntoView({ block: "center" });
  }, []);
  const { done, total, message } = (!row.call?.isOver && progress) || {};
  const step = [`${done}${total ? ` of ${total}` : ""}`, message].filter(Boolean).join(": ");
  const lines = done === undefined ? row.lines : [...row.lines, { label: "progress", text: step }];
  return html`<details ref=${element} class="entry" data-severity=${row.severity} data-pointed=${isPointed} open=${open}
    onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>
      <time datetime=${row.at} title=${date(row.at)}>${offset(row.offset)}</time>
      ${lines.map(({ label, text }) => html`<span class="label">${label}</span>
        <span class="text"><${Text}>${text}</></span>`)}
    </summary>
    ${open && html`<${EventDetails} row=${row} act=${act} />`}
  </details>`;
}

function Turn({ turn, query, pointed, progress, act }) {
  const canFork = act.fork && turn.over && turn.replied;
  return html`<section class="turn" aria-label=${`Turn ${turn.turn + 1}`}>
    ${turn.rows.map((row) => html`<${Memo} key=${row.seq} of=${Row} row=${row} pointed=${pointed}
      progress=${row.call && progress[row.call.id]} act=${act} />`)}
    ${(turn.decided || canFork) && html`<p class="decided">
      <span class="label">${turn.decided ? "decided" : ""}</span> <span class="text">${turn.decided ?? ""}</span>
      ${canFork && html`<button class="plain" onClick=${() => act.fork(query, turn.turn)}>Fork here</button>`}</p>`}
  </section>`;
}

function Agent({ agent, act }) {
  const { session, scope, outcome, turns, sub_agents: below = [] } = agent;
  return html`<li>
    <span class="row">${act.href ? html`<a href=${act.href(session)}>${session}</a>` : html`<code>${session}</code>`}
      <${Badge} of=${outcome ?? "running"} />
      <span class="soft">${grouped(turns)} turns, ${grouped(agent.tokens)} tokens</span></span>
    <p class="text"><${Text}>${textOf(scope)}</></p>
    <ul>${below.map((one) => html`<${Agent} key=${one.session} agent=${one} act=${act} />`)}</ul>
  </li>`;
}

function Agents({ query, act }) {
  const [tree, setTree] = useState(null);
  useEffect(() => {
    act.tree?.(query.id).then(setTree, () => {});
  }, [query.children]);
  const agents = query.children.map((child) => ({ ...tree?.find((one) => one.session === child.session), ...child }));
  return html`<section class="agents"><h3>Sub-agents</h3>
    <ul>${agents.map((agent) => html`<${Agent} key=${agent.session} agent=${agent} act=${act} />`)}</ul></section>`;
}

function Meter({ label, value, limit, warned, show }) {
  const share = limit ? Math.min(1, value / limit) : 0;
  const text = `${show(value)}${limit ? ` of ${show(limit)}` : ", no limit"}`;
  const level = share >= 1 ? "bad" : warned ? "warn" : "good";
  return html`<div class="meter">
    <span>${label}</span><span class="number">${text}</span>
    <div role="meter" aria-label=${label} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(share * 100)}
      aria-valuetext=${text} data-level=${level}>
      <div style=${{ inlineSize: `${share * 100}%` }}></div>
      ${warned &&
        html`<i title=${`Warned at ${percent(warned)}`} style=${{ insetInlineStart: `${100 * warned}%` }}></i>`}
    </div></div>`;
}

/** The budgets of a query and what it used of them; marks show where it was warned. */
function Budget({ query, view }) {
  const { turns, usage, limits } = view?.query === query.id && view.limits ? view : query;
  const meter = (label, name, value, show) => html`<${Meter} label=${label} value=${value} show=${show}
    limit=${limits?.[`max_${name}`]} warned=${query.warned[name]} />`;
  return html`<div class="budget">${meter("Turns", "turns", turns, grouped)}
    ${meter("Tokens", "tokens", totalTokens(usage), grouped)} ${meter("Cost", "cost", usage.cost, cost)}</div>`;
}

function Timeline({ model, query, onSelect, pointed, progress, view, act }) {
  const options = model.queries.map((one) => html`<option value=${one.id} selected=${one.id === query.id}>${
    visible(`Question ${one.id}: ${one.accepted ? brief(one.accepted.text, 80) : "begins earlier"}`)}</option>`);
  const items = [...(query === model.queries[0] ? model.rows : []), ...(query?.items ?? [])];
  return html`<section class="timeline panel" aria-label="Timeline" tabindex="0">
    <div class="row spread"><h2>Timeline</h2>
      ${query && html`<select aria-label="Question" onChange=${(event) => onSelect(Number(event.target.value))}>
        ${options}</select>`}</div>
    ${query && html`<${Budget} query=${query} view=${view} />`}
    ${query?.children.length > 0 && html`<${Memo} of=${Agents} query=${query} act=${act} />`}
    <div key=${query?.id}>
      ${items.map((item) => item.lines
        ? html`<${Memo} key=${item.seq} of=${Row} row=${item} pointed=${pointed} act=${act} />`
        : html`<${Memo} key=${`turn ${item.turn}`} of=${Turn} turn=${item} query=${query.id} pointed=${pointed}
            progress=${progress} act=${act} />`)}
      ${query?.end === null && html`<p class="decided"><span class="label">ended</span>
        <span class="text">not yet</span></p>`}
    </div>
  </section>`;
}

/** A conversation and the timeline of one of its queries, of a model made by `extend`. */
export function Panes({ model, selected, onSelect, pointed, live, progress = NONE, view, act = NONE }) {
  const begun = model.queries.findLast(({ items }) => items.length > 1) ?? model.queries[0];
  const query = model.queries.find(({ id }) => id === selected) ?? begun;
  return html`<div class="panes">
    <${Conversation} model=${model} selected=${query?.id} onSelect=${onSelect} live=${live} view=${view}
      act=${act} />
    <${Timeline} model=${model} query=${query} onSelect=${onSelect} pointed=${pointed} progress=${progress} view=${view}
      act=${act} />
  </div>`;
}

/** A conversation and its timelines, of an array of events alone, such as in a report. */
export function SessionBody({ events }) {
  const [selected, select] = useState(null);
  const model = useMemo(() => extend(EMPTY, events), [events]);
  return html`<${Panes} model=${model} selected=${selected} onSelect=${select} />`;
}
