// What an operator can do to a session, and the dialogs that ask before it is done.

import { control } from "./api.js";
import { Failure, html, instead, Text, useEffect, useRef, useState } from "./ui.js";
import { pretty } from "./why.js";

const scaled = (value, factor = 1) => (value ? Math.round(Number(value) * factor) : undefined);
const limitsOf = ({ turns, tokens, dollars }) => ({
  limits: { max_turns: scaled(turns), max_tokens: scaled(tokens), max_cost: scaled(dollars, 1e9) },
});
const limitFields = (limits, turns, empty) => [
  { name: "turns", label: "Turns (1 to 100)", type: "number", min: 1, max: 100, value: turns, required: true },
  { name: "tokens", label: `Tokens (empty: ${empty})`, type: "number", min: 1, value: limits?.max_tokens },
  { name: "dollars", label: `US dollars (empty: ${empty})`, type: "number", min: 0, step: "any",
    value: limits?.max_cost && limits.max_cost / 1e9 },
];

// Why an action is not possible now; falsy if it is.
const noQuery = (s) => !s.view?.query && "No question is running.";
const quarantined = (s) => s.view?.state === "quarantined" && "The session is quarantined.";
const unavailable = (s) => quarantined(s) || (s.view?.state === "closed" && "The session is closed.");

/** A fork of a session, up to the end of a query or of one of its turns. */
export const forkAt = (s, query, turn) => ({
  verb: "fork", label: "Fork…", submitLabel: "Fork", title: `Fork ${s.name}`,
  description: "A new session continues from a copy of this one. Its budgets count the copied usage.",
  fields: [
    { name: "into", label: "Name of the new session", required: true, pattern: "[A-Za-z0-9._:\\-]{1,128}",
      value: `${s.name.replace(/^~/, "")}-fork` },
    { name: "query", label: "Up to question", type: "number", min: 0, value: query, required: true },
    { name: "turn", label: "Up to its turn (empty: its end)", type: "number", min: 1,
      value: turn === undefined ? "" : turn + 1 },
  ],
  body: ({ into, query, turn }) => ({ into, query: Number(query), turn: turn ? Number(turn) - 1 : undefined }),
});

/**
 * The verbs for a session `{name, view, lastQuery}`: `view` is the answer to `inspect`. `blocked` says why one is not
 * possible now; those with `description` or `fields` ask first; those `inBar` need no menu.
 */
const verbs = (s) => [
  s.view?.paused
    ? { verb: "resume", label: "Resume", inBar: true, notice: "Resumed." }
    : { verb: "pause", label: "Pause", inBar: true, blocked: noQuery(s), notice: "Paused: nothing new starts." },
  { verb: "steer", label: "Steer…", inBar: true, blocked: unavailable(s), title: "Steer", submitLabel: "Steer",
    description: s.view?.query
      ? "The model reads this before its next call." : "Nothing is running: this starts a question.",
    fields: [{ name: "text", label: "Text", type: "textarea", required: true }] },
  { verb: "interrupt", label: "Interrupt…", inBar: true, danger: true, blocked: noQuery(s), submitLabel: "Interrupt",
    title: `Interrupt question ${s.view?.query}?`, description: "It ends as cancelled, without an answer.",
    body: () => ({ query: s.view.query }) },
  { verb: "finish_now", label: "Finish now…", danger: true, blocked: noQuery(s), submitLabel: "Finish now",
    title: "Finish the question now?", description: "It ends with the text written so far." },
  { verb: "set_budget", label: "Budget…", blocked: noQuery(s), submitLabel: "Set",
    title: "Budget of the running question", body: limitsOf,
    description: "A limit below what is spent ends the question before its next turn.",
    fields: limitFields(s.view?.limits, s.view?.limits?.max_turns, "unchanged") },
  { verb: "continue", label: "Continue…", title: "Continue the question", submitLabel: "Continue",
    blocked: unavailable(s) || (s.view?.query && "A question is running.") ||
      (s.lastQuery?.end?.outcome !== "forced" && "Only a forced question can be continued."),
    description: "A new question continues the forced one. The limits cover both.",
    fields: limitFields(
      s.lastQuery?.limits, s.lastQuery?.limits && Math.min(100, s.lastQuery.limits.max_turns + 10), "the profile's"),
    body: limitsOf },
  { verb: "attach_tool", label: "Grant a tool…", blocked: unavailable(s), title: "Grant a tool", submitLabel: "Grant",
    description: "The session can use it from the next call on. Only tools listed in `attachable` can be granted.",
    fields: [{ name: "tool", label: "Tool", required: true, value: s.view?.grant?.tools[0] ?? "" }] },
  { ...forkAt(s, s.lastQuery?.id ?? 0), blocked: quarantined(s) },
  { verb: "restart", label: "Restart…", danger: true, blocked: quarantined(s), submitLabel: "Restart",
    title: `Restart ${s.name}?`,
    description: "The session stops and recovers from its records. A call of unknown outcome may be lost." },
  { verb: "release", label: "Release…", blocked: s.view?.state !== "quarantined" && "The session is not quarantined.",
    title: `Release ${s.name} from quarantine?`, description: "It continues where it was.", submitLabel: "Release" },
];

/** Denies a call, with a reason that the model reads. */
const denial = (call) => ({
  verb: "deny", title: `Deny ${call.name}?`, danger: true, submitLabel: "Deny", notice: "Denied.",
  fields: [{ name: "reason", label: "Reason, which the model reads (optional)", type: "textarea", maxlength: 500 }],
  body: ({ reason }) => ({ call: call.id, token: call.token, reason: reason || undefined }),
});

/** Approves a call. */
const approval = ({ id, token }) => ({ verb: "approve", notice: "Approved.", body: () => ({ call: id, token }) });

/** Executes an action with the values of its fields. */
export const perform = (action, session, values = {}) =>
  control(action.verb, { session, ...(action.body ? action.body(values) : values) });

function Field({ name, label, type = "text", value, ...rest }) {
  const control = type === "textarea"
    ? html`<textarea name=${name} rows="4" ...${rest} />`
    : html`<input name=${name} type=${type} defaultValue=${value} autocomplete="off" ...${rest} />`;
  return html`<label><span>${label}</span>${control}</label>`;
}

/** Asks for an action's fields or for confirmation; `close(answer)` gets no answer if cancelled. */
export function ActionDialog({ action, session, close }) {
  const dialog = useRef();
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => dialog.current.showModal(), []);
  const submit = async (event) => {
    setBusy(true);
    try {
      close(await perform(action, session, Object.fromEntries(new FormData(event.target))));
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`<dialog ref=${dialog} aria-labelledby="action-title" onClose=${() => close()}>
    <form onSubmit=${instead(submit)}>
      <h2 id="action-title"><${Text}>${action.title}</></h2>
      ${action.description && html`<p>${action.description}</p>`}
      ${action.fields?.map((field) => html`<${Field} key=${field.name} ...${field} />`)}
      <${Failure} error=${error} />
      <div class="row">
        <button type="button" onClick=${() => close()}>Cancel</button>
        <button class=${action.danger ? "danger" : "primary"} disabled=${isBusy}>${action.submitLabel}</button>
      </div>
    </form></dialog>`;
}

/** Buttons for the most used verbs and a menu of the others. */
export function ActionBar({ session, onAction }) {
  const menu = useRef();
  const start = (action) => {
    menu.current.hidePopover();
    onAction(action);
  };
  const button = (action) => html`<button key=${action.label} class=${action.danger ? "danger" : ""}
    disabled=${Boolean(action.blocked)} title=${action.blocked || undefined}
    onClick=${() => start(action)}>${action.label}</button>`;
  const all = verbs(session);
  return html`<div class="row actions">
    ${all.filter(({ inBar }) => inBar).map(button)}
    <button popovertarget="verbs">More</button>
    <div id="verbs" class="panel" popover="auto" ref=${menu}>${all.filter(({ inBar }) => !inBar).map(button)}</div>
  </div>`;
}

/** The arguments of a call, field by field so that texts keep their lines; unchanged if that would hide something. */
function Arguments({ json }) {
  const text = pretty(json);
  if (text === json || !text.startsWith("{")) return html`<pre tabindex="0"><${Text}>${text}</></pre>`;
  const fields = Object.entries(JSON.parse(text));
  const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
  return html`<div class="arguments" tabindex="0" role="group" aria-label="Arguments"><dl>
    ${fields.map(([name, value]) => html`<dt><${Text}>${name}</></dt><dd><${Text}>${shown(value)}</></dd>`)}
  </dl></div>`;
}

/** The calls that wait for approval, and a query that waits for a tool. */
export function PendingCalls({ view, onAction }) {
  const calls = view.calls.map(({ call, token }) => ({ ...call, token }));
  if (!calls.length && !view.grant) return null;
  const grant = (tool) => ({ verb: "attach_tool", notice: `Granted ${tool}.`, body: () => ({ tool }) });
  return html`<section class="waiting panel" aria-label="Waiting for a person">
    ${calls.map((call) => html`<div key=${call.token} class="row spread">
      <div><h2>Approve <${Text}>${call.name}</>?</h2>
        <${Arguments} json=${call.arguments} /></div>
      <span class="row"><button class="primary" onClick=${() => onAction(approval(call))}>Approve</button>
        <button class="danger" onClick=${() => onAction(denial(call))}>Deny…</button></span>
    </div>`)}
    ${view.grant && html`<div class="row spread"><h2>The question needs a tool.</h2>
      ${view.grant.tools.map((tool) => html`<button class="primary" key=${tool}
        onClick=${() => onAction(grant(tool))}>Grant ${tool}</button>`)}
    </div>`}
  </section>`;
}
