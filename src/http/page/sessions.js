// The list of sessions: searched, filtered and sorted by the server, of which only what is in sight is read.

import { control, get, queryString } from "./api.js";
import { age, compact, cost, grouped, money, sessionHref, words } from "./format.js";
import { Badge, Failure, html, Text, useEffect, useMemo, usePoll, useRef, useState } from "./ui.js";

const PAGE = 100; // rows that are read at once
const SPARE = 8; // rows drawn above and below those in sight

const OUTCOMES = ["answered", "partial", "stuck", "forced", "escalated", "cancelled", "failed"];
const SIGNALS = [
  "need_turn", "context_sufficient", "stuck", "need_capability", "partial_answer", "delegation_recommended",
];
const COSTS = { 1e7: "over $0.01", 1e8: "over $0.10", 1e9: "over $1", 1e10: "over $10" };
const AGES = { 60: "over a minute", 600: "over 10 minutes", 3_600: "over an hour", 86_400: "over a day" };
const SORTS = {
  "": "most urgent first", updated: "latest first", cost: "highest cost first", tokens: "most tokens first",
  age: "oldest first", name: "by name",
};
const named = (names) => Object.fromEntries(names.map((name) => [name, words(name)]));

/** The columns: title, order (null for none) and cell. */
const COLUMNS = [
  ["Session", "name", (s, { tenant }) => html`<a href=${sessionHref(s.tenant, s.session)}>
    <${Text}>${s.tenant === tenant ? "" : `${s.tenant}/`}${s.session}</></a>`],
  ["State", "", (s) => html`<${Badge} of=${s.state}
    title=${["quarantined", "unreadable"].includes(s.state) ? s.reason : null} />`],
  ["Question", null, (s) => html`<${Text}>${(s.question ?? "").slice(0, 300)}</>`],
  ["Profile", null, (s) => html`<${Text}>${s.profile ?? ""}</>`],
  ["Turn", null, (s) => s.query && `${s.turns}/${s.max_turns ?? "–"}`],
  ["Last signal", null, (s) => words(s.signal)],
  ["Last outcome", null, (s) => s.outcome && html`<${Badge} of=${s.outcome} title=${words(s.reason)} />`],
  ["Tokens", "tokens", (s) => compact(s.tokens)],
  ["Cost", "cost", (s) => cost(s.cost)],
  ["Age", "age", (s, _, now) => age(s.since ?? s.updated, now)],
];

/** The latest value, but at most one in `ms`. */
function useThrottled(value, ms) {
  const [settled, setSettled] = useState(value);
  const latest = useRef();
  const timer = useRef(0);
  latest.current = value;
  useEffect(() => {
    timer.current ||= setTimeout(() => {
      timer.current = 0;
      setSettled(latest.current);
    }, ms);
  }, [value]);
  return settled;
}

/** The first row to draw of a scrolling element, the number of rows, and their height. */
function useRows(element) {
  const [first, setFirst] = useState(0);
  const [count, setCount] = useState(40);
  const [height, setHeight] = useState(36);
  useEffect(() => {
    const { current } = element;
    const look = () => {
      const row = parseFloat(getComputedStyle(current).getPropertyValue("--row"));
      const top = Math.floor(current.scrollTop / row);
      setFirst(Math.max(0, top - (top % 4) - SPARE)); // draws again every fourth row
      setCount(Math.ceil(current.clientHeight / row) + 2 * SPARE + 4);
      setHeight(row);
    };
    const size = new ResizeObserver(look);
    size.observe(current);
    current.addEventListener("scroll", look, { passive: true });
    return () => size.disconnect();
  }, []);
  return { first, count, height };
}

function Choice({ name, label, of, query, onChange }) {
  const value = query[name] ?? "";
  const all = value && !(value in of) ? { ...of, [value]: words(value) } : of;
  return html`<label class=${name}><span>${label}</span>
    <select value=${value} onChange=${(event) => onChange({ [name]: event.target.value })}>
      ${!("" in of) && html`<option value="">any</option>`}
      ${Object.entries(all).map(([key, text]) => html`<option key=${key} value=${key}>${text}</option>`)}
    </select>
  </label>`;
}

function Search({ query: { search = "" }, onChange }) {
  const input = useRef();
  const timer = useRef();
  const typed = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => input.current && onChange({ search: input.current.value }), 200);
  };
  useEffect(() => {
    if (document.activeElement !== input.current) input.current.value = search;
  }, [search]);
  const field = html`<input type="search" ref=${input} onInput=${typed} />`;
  return html`<label class="search"><span>Name or question</span>${field}</label>`;
}

function Head({ sort = "", onChange }) {
  const head = ([title, order]) => {
    if (order === null) return html`<div role="columnheader">${title}</div>`;
    const sorted = order === sort ? (order === "name" ? "ascending" : "descending") : undefined;
    return html`<div role="columnheader" aria-sort=${sorted}>
      <button class="plain" title=${SORTS[order]} onClick=${() => onChange({ sort: order })}>${title}</button>
    </div>`;
  };
  return html`<div role="row" class="head" aria-rowindex="1">${COLUMNS.map(head)}</div>`;
}

function Filters({ caller, page, query, onChange }) {
  const readTenants = async () => (caller.role === "admin" ? (await control("tenants", { limit: 1_000 })).tenants : []);
  const [tenants] = usePoll(readTenants, 60_000);
  const profiles = useRef(new Set(caller.profiles)).current;
  for (const { profile } of page?.sessions ?? []) if (profile) profiles.add(profile);
  const counted = ([name, count]) => [name, `${words(name)} (${grouped(count)})`];
  const states = Object.fromEntries(Object.entries(page?.states ?? {}).map(counted));
  const choice = (name, label, of) => html`<${Choice} ...${{ name, label, of, query, onChange }} />`;
  return html`<div class="filters" role="search">
    <${Search} query=${query} onChange=${onChange} />
    ${choice("state", "State", states)} ${choice("profile", "Profile", named([...profiles]))}
    ${tenants?.length > 1 && choice("tenant", "Tenant", Object.fromEntries(tenants.map((name) => [name, name])))}
    ${choice("signal", "Last signal", named(SIGNALS))} ${choice("outcome", "Last outcome", named(OUTCOMES))}
    ${choice("min_cost", "Cost", COSTS)} ${choice("min_age", "Age", AGES)} ${choice("sort", "Order", SORTS)}
  </div>`;
}

/** The view of all sessions that the caller may see. */
export function Sessions({ caller, query }) {
  const list = useRef();
  const { first, count, height } = useRows(list);
  const filter = queryString(query);
  const offset = useThrottled(Math.max(0, Math.floor((first - 25) / 25) * 25), 80);
  const read = async (signal) => {
    const page = await get(`/api/activity${queryString({ ...query, offset, limit: PAGE })}`, { signal });
    return { ...page, filter, offset, now: Date.now() };
  };
  const [page, error] = usePoll(read, 1_000, [filter, offset]);
  const change = (fields) => location.replace(`#/sessions${queryString({ ...query, ...fields })}`);
  useEffect(() => {
    list.current.scrollTop = 0;
  }, [filter]);

  // The rows that were read: scrolling draws none of them again.
  const known = useMemo(() => {
    const cells = (session) =>
      COLUMNS.map(([title, , cell]) => html`<div role="cell" key=${title}>${cell(session, caller, page.now)}</div>`);
    return page?.sessions.map((one, index) => html`<div role="row" key=${`${one.tenant}/${one.session}`}
      aria-rowindex=${page.offset + index + 2}>${cells(one)}</div>`);
  }, [page]);
  const total = page?.matching ?? 0;
  const filtered = Object.keys(query).some((name) => name !== "sort");
  const note = (key, message) => html`<div role="row" key=${key}><div role="cell" class="note">${message}</div></div>`;
  const rows = Array.from({ length: Math.max(0, Math.min(count, total - first)) }, (_, at) => {
    const index = first + at;
    return (page.filter === filter && known[index - page.offset]) || note(index, "…");
  });
  if (!page) rows.push(note("", "Loading…"));
  else if (!total) rows.push(note("", filtered ? "No sessions match these filters." : "There are no sessions yet."));

  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [...list.current.querySelectorAll("a")];
    const now = links.indexOf(document.activeElement);
    if (!step || (now < 0 && document.activeElement !== list.current)) return;
    event.preventDefault();
    const top = list.current.getBoundingClientRect().top + height;
    (now < 0 ? links.find((one) => one.getBoundingClientRect().top > top) : links[now + step])?.focus();
  };
  return html`<div class="sessions">
    <div class="row">
      <h1>Sessions</h1>
      <p class="soft">${page && (filtered ? `${grouped(total)} of ${grouped(page.total)} ` : grouped(total))}
        ${filtered && html`<a href=${`#/sessions${queryString({ sort: query.sort })}`}>Clear filters</a>`}</p>
    </div>
    <${Filters} caller=${caller} page=${page} query=${query} onChange=${change} />
    ${error?.status > 0 && html`<${Failure} error=${error} />`}
    <div class="list panel" ref=${list} tabindex="0" role="table" aria-label="Sessions" aria-rowcount=${total + 1}
      onKeyDown=${move}>
      <${Head} sort=${query.sort} onChange=${change} />
      <div role="rowgroup" class="rows" style=${{ height: `${Math.min(total * height, 15_000_000)}px` }}>
        <div role="presentation" style=${{ transform: `translateY(${first * height}px)` }}>${rows}</div>
      </div>
    </div>
  </div>`;
}
