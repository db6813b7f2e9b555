// The log of a session as queries, turns and rows: a pure function of its events, which shares what did not change.

import { duration, totalTokens, words } from "./format.js";
import { textOf, why } from "./why.js";

const NO_USAGE = {
  input_tokens: 0, cached_tokens: 0, cacheable_tokens: 0, missed_tokens: 0, output_tokens: 0, reasoning_tokens: 0, cost: 0,
};

/** The model of a log without events. */
export const EMPTY = { first: 0, last: 0, profile: null, parent: null, fork: null, rows: [], queries: [] };

// A cost is null where a price is unknown; a number that is 0 may be left out.
const plus = (a = 0, b = 0) => (a === null || b === null ? null : a + b);
const sum = (a, b) => Object.fromEntries(Object.keys(NO_USAGE).map((name) => [name, plus(a[name], b[name])]));
const newQuery = ({ query, at }) => ({
  id: query, at, accepted: null, end: null, turns: 0, usage: NO_USAGE, warned: {}, items: [], children: [],
});
const newTurn = (number) => ({ turn: number, rows: [], mode: "normal", over: false });

/** Adds events to a model. Those that it has are left out; queries and turns without new events stay the same. */
export function extend(model, events) {
  const fresh = events.filter((event) => event.seq > model.last);
  if (!fresh.length) return model;
  const copied = new Set();
  // Queries and turns are shared with the earlier model: the first change copies one.
  const writable = (list, index) => {
    if (!copied.has(list[index])) {
      const parts = Object.entries(list[index]);
      list[index] = Object.fromEntries(parts.map(([name, part]) => [name, Array.isArray(part) ? [...part] : part]));
      copied.add(list[index]);
    }
    return list[index];
  };
  const next = { ...model, rows: [...model.rows], queries: [...model.queries] };
  Object.assign(next, { first: model.first || fresh[0].seq, last: fresh.at(-1).seq });
  for (const event of fresh) apply(next, event, writable);
  return next;
}

function apply(model, event, writable) {
  const { type, payload: p, turn: number } = event;
  if (type === "session.opened") Object.assign(model, { profile: p.profile, parent: p.parent ?? null });
  if (type === "session.forked") model.fork = p.parent;
  if (event.query === null && !model.queries.length) {
    model.rows.push(row(event, { at: event.at }));
    return;
  }
  let at = event.query === null ? model.queries.length - 1 : model.queries.findIndex(({ id }) => id === event.query);
  if (at < 0) at = model.queries.push(newQuery(event)) - 1;
  const query = writable(model.queries, at);
  updateQuery(query, event, model);
  if (event.row) decide(query, event, writable);
  if (number === null || event.query === null) {
    if (type === "query.finished") close(query, writable);
    const isOpen = query.items.at(-1)?.over === false;
    const list = isOpen ? writable(query.items, query.items.length - 1).rows : query.items;
    list.push(row(event, query));
    return;
  }
  let index = query.items.findLastIndex((item) => item.turn === number);
  if (index < 0) {
    close(query, writable);
    index = query.items.push(newTurn(number)) - 1;
  }
  const turn = writable(query.items, index);
  if (!mergeIntoCall(turn, event)) turn.rows.push(row(event, query, turn));
  updateTurn(turn, event);
}

function updateQuery(query, { type, payload: p, at, seq }, model) {
  if (p.usage) query.usage = sum(query.usage, p.usage);
  const warn = (budget, share) => {
    query.warned = { ...query.warned, [budget]: share };
  };
  const updateChild = (fields) => {
    const index = query.children.findIndex(({ session }) => session === p.child);
    if (index >= 0) query.children[index] = { ...query.children[index], ...fields };
  };
  switch (type) {
    case "query.accepted": {
      const { turns, usage } = model.queries.find(({ id }) => id === p.continues) ?? query;
      Object.assign(query, { accepted: p, seq, at, limits: p.limits, turns, usage });
      break;
    }
    case "query.finished": Object.assign(query, { end: p, usage: p.usage }); break;
    case "control.budget_set": query.limits = p.limits; break;
    case "budget.iteration.warning": warn("turns", p.turn / p.max_turns); break;
    case "budget.tokens.warning": warn("tokens", p.used / p.limit); break;
    case "budget.cost.warning": warn("cost", p.used / p.limit); break;
    case "turn.replied": query.turns += 1; break;
    case "delegation.started": query.children.push({ session: p.child, scope: p.scope, turns: 0, tokens: 0 }); break;
    case "delegation.progressed": updateChild({ turns: p.turns, tokens: p.tokens }); break;
    case "delegation.finished": updateChild({ outcome: p.outcome, tokens: totalTokens(p.usage) }); break;
  }
}

function updateTurn(turn, { type, payload: p, at }) {
  if (type === "turn.started") Object.assign(turn, { mode: p.mode, asked: at });
  else if (type === "turn.restarted") turn.asked = at;
  else if (type === "turn.replied") turn.replied = p;
}

const took = (from, to) => (from ? duration(new Date(to) - new Date(from)) : "");

function row(event, query, turn) {
  const since = { "query.finished": query.accepted && query.at, "turn.replied": turn?.asked }[event.type];
  const lines = why(event, { took: took(since, event.at) });
  const call = event.type === "tool.requested" ? event.payload : null;
  const offset = new Date(event.at) - new Date(query.at);
  return { seq: event.seq, at: event.at, offset, severity: severity(event), lines, events: [event], call };
}

function severity({ type, payload: p, severity: given }) {
  const isWeak = type === "tool.finished" ? p.status !== "ok" : p?.type === "stuck";
  return isWeak || ["tool.refused", "signal.rejected", "fallback.triggered"].includes(type) ? "warning" : given;
}

/** Adds a later event of a call to the call's row; false if it is none. */
function mergeIntoCall(turn, event) {
  const { type, payload: p } = event;
  if (!["tool.started", "tool.finished", "tool.refused"].includes(type)) return false;
  const id = p.call ?? p.id;
  const index = turn.rows.findLastIndex(({ call }) => call && call.id === id && !call.isOver);
  if (index < 0) return false;
  const known = turn.rows[index];
  const isStart = type === "tool.started";
  const call = { ...known.call, isOver: !isStart, started: isStart ? event.at : known.call.started };
  const lines = why(event, { arguments: call.arguments, took: took(call.started, event.at) });
  turn.rows[index] = { ...known, call, lines, severity: severity(event), events: [...known.events, event] };
  return true;
}

/** Ends the last turn: what follows is outside of it. */
function close(query, writable) {
  const index = query.items.findLastIndex((item) => item.rows);
  if (index >= 0 && !query.items[index].over) writable(query.items, index).over = true;
}

// What the rows of the decision table (docs/protocol.md) are about.
const DECISIONS = [
  "a final turn", "a last turn with an answer", "a last turn, partial or stuck", "a last turn without an end", "a loop",
  "stuck again", "the fallback escalated again", "the fallback acted", "tool calls", "a weak end, excused once",
  "context sufficient", "partial answer", "stuck", "need turn", "need capability", "delegation recommended",
  "conversation without a signal", "no valid signal",
];

/** Notes the row that a turn matched, which the event that follows from it has. */
function decide(query, { type, payload: p, turn: number, row }, writable) {
  const isNext = type === "turn.started" || type === "budget.context.compacting";
  const index = query.items.findLastIndex((item) => item.replied && (!isNext || item.turn < number));
  if (index < 0) return;
  const isSpent = p.by === "tokens" || p.by === "cost";
  const next = isSpent ? `next turn; then the budget was spent: ${p.by}` : p.outcome ?? "next turn";
  writable(query.items, index).decided = `by row ${row}: ${DECISIONS[row - 1]}: ${next}`;
}

/** The end of a query's answer that its turns' texts do not show already. */
export function remainder({ end, items }) {
  const replies = items.filter((item) => item.replied && item.mode !== "signal");
  const texts = replies.map(({ replied }) => textOf(replied.text));
  const answer = textOf(end?.answer);
  if (answer === texts.findLast(Boolean)) return "";
  const all = texts.filter(Boolean).join("\n\n");
  return all && answer.startsWith(all) ? answer.slice(all.length).trim() : answer;
}
