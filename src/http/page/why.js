// What each event means, in the words of the terminal's `/why`.

import { duration, grouped, money, percent, words } from "./format.js";

/** A text of an event; a long one is only a reference to the whole. */
export const textOf = (value) => (value?.ref ? `[text of ${grouped(value.ref.bytes)} bytes]` : String(value ?? ""));

/** A text in one line, cut if it is long. */
export function brief(value, most = 240) {
  const text = textOf(value).trim().split(/[^\S\u00a0]+/).join(" ");
  const characters = text.length > most ? [...text] : [];
  return characters.length > most ? `${characters.slice(0, most).join("")}…` : text;
}

/** JSON in lines; unchanged where that would hide something, such as a repeated name. */
export function pretty(json) {
  const bare = (text) => text.replace(/\s/g, "");
  try {
    const value = JSON.parse(json);
    if (bare(JSON.stringify(value)) === bare(json)) return JSON.stringify(value, null, 2);
  } catch {
    // Shown as it is.
  }
  return textOf(json);
}

function used(usage) {
  const { cached_tokens: read, missed_tokens: missed, reasoning_tokens: reasoning } = usage;
  const cached = joined(", ", (read || missed) && `${grouped(read)} of them cached`, missed && `${grouped(missed)} missed`);
  const sent = `${tokens(usage.input_tokens)} sent${cached && ` (${cached})`}`;
  const received = `${grouped(usage.output_tokens)} received${reasoning ? ` (${grouped(reasoning)} of them reasoning)` : ""}`;
  const cost = usage.cost === null ? "cost unknown" : money(usage.cost);
  return `${sent}, ${received}, ${cost}`;
}

const counted = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
const joined = (between, ...parts) => parts.filter(Boolean).join(between);
const limits = ({ max_turns, max_tokens, max_cost }) =>
  joined(", ", `at most ${counted(max_turns, "turn")}`, max_tokens && tokens(max_tokens), max_cost && money(max_cost));
const fault = ({ detail, code }) => `${textOf(detail)} (${code})`;
const by = (label) => (p) => [[label, `by ${p.by}`]];
const amounts = (say, unit) => (p) => [["budget", `${say} ${unit(p.used)} of ${unit(p.limit)}`]];
const tool = (p, how, values = p.arguments) => [["tool", `${p.name} ${brief(values, 100)}: ${how}`]];
const agent = (text) => (p) => [["sub-agent", `session ${p.child}${text(p)}`]];
const tokens = (number) => `${grouped(number)} tokens`;
const MODES = {
  last: ", the last turn of the budget, without tools",
  final: ", for the final answer, without tools",
  signal: " for the missing signal only",
};

function signal({ type, confidence, fields: f }) {
  const about = {
    need_capability: `${f.capability}: ${f.reason}`,
    context_sufficient: counted(f.sources_found ?? 0, "source"),
    partial_answer: `missing: ${f.missing}`,
  };
  const text = about[type] ?? textOf(f.reason ?? f.blocker ?? f.scope);
  return `${words(type)}, ${percent(confidence)} sure: ${text}`;
}

// For each type its rows of label and text.
const ROWS = {
  "query.accepted": (p, c) => [
    [`question ${c.query}`, p.text],
    ["continues", p.continues && `question ${p.continues}`],
    ["limits", limits(p.limits)],
  ],
  "query.classified": ({ classification: c, prompt }) => [
    ["type", `${words(c.query_type)}, ${percent(c.confidence)} sure, by ${
      c.keywords_matched.join(", ") || "no words of the lexicon"}`],
    ["prompt", `${prompt.segments_included.join(", ")}: about ${tokens(prompt.token_estimate)}`],
    ...(prompt.warnings ?? []).map((text) => ["warning", text]),
  ],
  "query.finished": (p, c) => [
    ["ended", joined(": ", joined(", ", `${p.outcome} after ${counted(p.turns, "turn")}`, c.took), textOf(p.reason))],
    ["used", used(p.usage)],
    ["sources", p.unverified && "unverified, no call found any"],
    ["detail", p.detail],
  ],
  "query.answer_rejected": (p) => [["format", `rejected: ${textOf(p.problem)}`]],
  "turn.started": (p, c) => [
    [`turn ${c.turn}`, `asking ${p.model}${MODES[p.mode] ?? ""}`],
    ...(p.guidance ?? []).map((text) => ["guidance", text]),
  ],
  "turn.restarted": (p) => [
    ["again", `asking ${p.model} after a ${p.code ? `fault (${p.code})` : "restart"}, attempt ${p.attempt}`],
  ],
  "turn.replied": (p, c) => [
    ["replied", `${p.model}${c.took ? ` in ${c.took}` : ""}, ${words(p.stop)}: ${used(p.usage)}${
      p.estimated ? ", estimated" : ""}`],
    ["cache", p.cache_miss && `${tokens(p.usage.missed_tokens)} missed: ${
      p.cache_miss.cause === "idle" ? `idle for ${duration(p.cache_miss.idle_ms)}` : words(p.cache_miss.cause)}`],
    ["signal", p.signal === "absent" && "none"],
  ],
  "signal.emitted": (p) => [["signal", signal(p)]],
  "signal.rejected": (p) => [["signal", `rejected: ${textOf(p.reason)}`]],
  "tool.requested": (p) => tool(p, "not started yet"),
  "tool.started": (p, c) => tool(p, "still running", c.arguments),
  "tool.finished": (p, c) => {
    const how = joined(" in ", words(p.status), c.took);
    return tool(p, joined(": ", how, p.status === "failed" && textOf(p.content).split("\n", 1)[0]), c.arguments);
  },
  "tool.refused": (p) => tool(p, `refused, ${words(p.why)}`),
  "tool.handed_over": (p) => [
    ["tool", `waiting for results of the client: ${p.calls.map((c) => `${c.name} ${textOf(c.arguments)}`).join(", ")}`],
  ],
  "tool.returned": (p) => [["tool", `results of the client, by ${p.by}`]],
  "approval.requested": (p) => [["approval", `requested for ${p.name}`]],
  "approval.answered": (p) => [["approval", joined(": ", words(p.verdict), textOf(p.reason))]],
  "budget.iteration.warning": (p) => [["budget", `warning: ${p.turn} of ${p.max_turns} turns used`]],
  "budget.iteration.exceeded": (p) => [["budget", `spent: ${p.turn} of ${p.max_turns} turns`]],
  "budget.tokens.warning": amounts("warning:", tokens),
  "budget.tokens.exceeded": amounts("spent:", tokens),
  "budget.cost.warning": amounts("warning:", money),
  "budget.cost.exceeded": amounts("spent:", money),
  "budget.context.warning": amounts("the context window is filling:", tokens),
  "budget.context.exceeded": amounts("the context window is full:", tokens),
  "budget.context.compacting": (p) => [["budget", `asking ${p.model} for a summary of the conversation`]],
  "budget.context.compacted": (p) => [
    ["budget", `${p.cut ? "the oldest messages were removed" : "a summary replaced earlier messages"}: ${
      tokens(p.before)} became ${grouped(p.after)}${p.cut ? `; no summary could be made: ${fault(p.cut)}` : ""}`],
  ],
  "budget.context.compaction_failed": (p) => [["budget", `summarizing failed: ${fault(p.fault)}`]],
  "loop.detected": (p) => [["loop", `the same ${words(p.kind)} repeated: ${textOf(p.detail)}`]],
  "fallback.triggered": (p) => [
    ["fallback", `for ${words(p.cause)}: ${words(p.action)}${p.applied ? "" : ", not applied"}, ${
      percent(p.confidence)} sure: ${textOf(p.reason)}`],
    ["hint", p.hint],
  ],
  "capability.requested": (p) => [
    ["missing", `${p.capability}: ${textOf(p.reason)}`],
    ["wait", p.until && `for an operator to grant ${p.grantable.join(" or ")}`],
  ],
  "capability.added": (p) => [["tool added", p.tools.map(({ tool }) => tool).join(", ")]],
  "delegation.recommended": (p) => [["sub-agent", `recommended for: ${textOf(p.scope)}`]],
  "delegation.started": agent((p) => ` started${p.profile ? ` as ${p.profile}` : ""}: ${textOf(p.scope)}`),
  "delegation.progressed": agent((p) =>
    joined(": ", `, turn ${p.turns}`, p.signal && words(p.signal), textOf(p.reason))),
  "delegation.cancelled": agent(() => " cancelled"),
  "delegation.finished": agent((p) => ` ended: ${p.outcome}; ${used(p.usage)}`),
  "escalation.raised": (p) => [["escalation", p.notice]],
  "llm.retried": (p) => [["fault", `attempt ${p.attempt}: ${fault(p.fault)}; retrying`]],
  "llm.failed_over": (p) => [["fault", `${p.from}: ${fault(p.fault)}; asking ${p.to} instead`]],
  "llm.failed": (p) => [["fault", `${p.model}: ${fault(p.fault)}`]],
  "llm.waiting": ({ model, reason }) => [
    ["wait", `for ${model.split("/")[0]}: ${reason === "unavailable" ? "server unavailable" : words(reason)}`],
  ],
  "llm.admitted": (p) => [["wait", `over after ${duration(p.waited_ms)}`]],
  "llm.rate_limited": (p) => [["wait", `${p.model} is held for ${duration(p.hold_ms)}: rate limit`]],
  "llm.rate_limit_cleared": (p) => [["wait", `the rate limit of ${p.model} has cleared`]],
  "llm.circuit_opened": (p) => [["fault", `${p.model ?? p.provider} is suspended for ${duration(p.cool_down_ms)}`]],
  "llm.circuit_closed": (p) => [["fault", `${p.model ?? p.provider} is available again`]],
  "supervisor.restarted": (p) => [["restarted", `by the supervisor, time ${p.count}: ${words(p.cause)}, ${p.detail}`]],
  "control.steered": (p) => [["steered", `by ${p.by}: ${textOf(p.text)}`]],
  "control.budget_set": (p) => [["limits", `${limits(p.limits)}, set by ${p.by}`]],
  "control.paused": by("paused"),
  "control.resumed": by("resumed"),
  "control.cancelled": by("cancelled"),
  "control.finished": by("told to finish"),
  "control.restarted": by("restarted"),
  "control.released": by("released"),
  "control.closed": by("closed"),
  "control.steered_late": by("steered late"),
  "control.tool_attached": (p) => [["tool attached", `${p.tool}, by ${p.by}`]],
  "control.continued": (p) => [["continued", `question ${p.continues}, ${limits(p.limits)}, by ${p.by}`]],
  "control.approval_answered": (p) => [["approval", `${words(p.verdict)} by ${p.by}`]],
  "control.forked": (p) => [["forked", `from ${p.from}, up to event ${p.seq}, by ${p.by}`]],
  "session.opened": (p) => [["opened", `session ${p.key.name}, profile ${p.profile}`]],
  "session.imported": (p) => [["imported", counted(p.messages?.length ?? 0, "earlier message")]],
  "session.head_composed": (p) => [["head", p.reason === "first" ? "prompt and tools" : `new: ${p.reason} changed`]],
  "session.quarantined": (p) => [["quarantined", p.reason]],
  "session.released": () => [["released", "from quarantine"]],
  "session.forked": (p) => [["forked", `a copy of ${p.parent} up to question ${p.query}`]],
  "session.closed": () => [["closed", "it takes no more messages"]],
  "session.passivated": () => [["passivated", "it left memory"]],
  "session.revived": () => [["revived", "it is in memory again"]],
};

/**
 * The rows of an event: `{label, text}`. `context` may have `took` (text) and the `arguments` of the call, which
 * earlier events tell. An unknown type appears under its name.
 */
export function why(event, context = {}) {
  const rows = ROWS[event.type] ?? (() => [[event.type, JSON.stringify(event.payload)]]);
  const facts = { query: event.query, turn: event.turn === null ? "" : event.turn + 1, ...context };
  return rows(event.payload, facts)
    .map(([label, text]) => ({ label, text: brief(text || "") }))
    .filter(({ text }) => text);
}
