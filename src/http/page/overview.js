// The server at a glance: what runs, how fast, at what cost, and what waits for whom.

import { Chart } from "./chart.js";
import { age, compact, duration, grouped, measured, money, sessionHref, words } from "./format.js";
import { PEOPLE, recorder, SECONDS } from "./metrics.js";
import { Badge, html, Text, useEffect, useNow, useState } from "./ui.js";

const RUNNING = [
  "waking", "preparing", "calling", "compacting", "tools", "backing_off", "delegating", "ending",
];
const COST = "cost_nanos_total";

const CHARTS = [
  {
    title: "Turns per second", format: measured, tick: (rate) => (rate < 10 ? `${rate}` : compact(rate)),
    series: [{ row: "turns", name: "turns", colour: "accent" }],
  },
  {
    title: "Turn latency", format: duration, log: true, tick: (ms) => (ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`),
    series: [
      { row: "model50", name: "model p50", colour: "accent" },
      { row: "model99", name: "model p99", colour: "accent", dashed: true },
      { row: "own50", name: "overhead p50", colour: "good" },
      { row: "own99", name: "overhead p99", colour: "good", dashed: true },
    ],
  },
  {
    title: "Active sessions", format: compact, stacked: true,
    series: [
      { row: "people", name: "waiting for a person", colour: "warn" },
      { row: "backing", name: "backing off", colour: "bad" },
      { row: "tools", name: "tools, sub-agents", colour: "good" },
      { row: "preparing", name: "preparing", colour: "violet" },
      { row: "calling", name: "calling", colour: "accent" },
    ],
  },
];

const Tile = ({ name, href, more, children }) =>
  html`<div class="panel"><dt>${href ? html`<a href=${href}>${name}</a>` : name}</dt>
    <dd><b>${children}</b><span title=${more}>${more}</span></dd></div>`;

/** The parts of a count that are not zero, such as `2 crash, 1 stall`. */
const parts = (pairs, none) =>
  pairs.flatMap(([name, count]) => (count ? `${compact(count)} ${words(name)}` : [])).join(", ") || none;

function Tiles({ metrics, waiting }) {
  const { now, hourly } = recorder;
  const live = (state) => metrics.sum("sessions_live", { state });
  // Sessions that wait for long leave the memory, so their calls count as well.
  const { count = 0, granting = 0 } = waiting ?? {};
  const grant = Math.max(live("grant"), granting);
  const least = { approval: count - grant, grant };
  const people = PEOPLE.map((state) => [state, Math.max(live(state), least[state] ?? 0)]);
  const queued = metrics.sum("messages_waiting");
  const behind = queued ? `${compact(queued)} queued` : `${compact(live("idle"))} idle`;
  const tokens = metrics.sum("tokens_total", { kind: ["input", "output"] });
  const total = (count) => `${compact(count)} in total`;
  return html`<dl class="tiles">
    <${Tile} name="Running" more=${behind}>${compact(live(RUNNING))}</>
    <${Tile} name="Waiting for a person" href="#/sessions?state=approval" more=${parts(people, "nothing waits")}>
      ${compact(people.reduce((sum, [, count]) => sum + count, 0))}</>
    <${Tile} name="Turns / s" more=${total(metrics.sum("turns_total"))}>${measured(now("turns"))}</>
    <${Tile} name="Model time, p50" more=${`p99 ${duration(now("model99"))}`}>${duration(now("model50"))}</>
    <${Tile} name="Overhead, p50" more=${`p99 ${duration(now("own99"))}`}>${duration(now("own50"))}</>
    <${Tile} name="Tokens / s" more=${total(tokens)}>${measured(now("tokens"))}</>
    ${metrics.all(COST).length > 0 &&
    html`<${Tile} name="Cost" more=${`${money(hourly(COST))} per hour`}>${money(metrics.sum(COST))}</>`}
    <${Tile} name="Restarts" more=${parts(metrics.by("restarts_total"), "since server start")}>
      ${compact(metrics.sum("restarts_total"))}</>
  </dl>`;
}

function Bars({ title, pairs, empty }) {
  const most = Math.max(1, ...pairs.map(([, count]) => count));
  const bar = ([name, count]) => html`<li key=${name} data-of=${name}>
    <span>${words(name)}</span>
    <i style=${{ inlineSize: count ? `max(2px, ${(100 * count) / most}%)` : 0 }}></i>
    <b>${compact(count)}</b>
  </li>`;
  return html`<section class="panel">
    <h2>${title}</h2>
    ${pairs.length ? html`<ul class="bars">${pairs.map(bar)}</ul>` : html`<p class="soft">${empty}</p>`}
  </section>`;
}

/** A table. `numbers` names the columns with numbers. */
function Table({ title, columns, numbers, children }) {
  const head = columns.map((column) => html`<th class=${numbers.includes(column) ? "number" : ""}>${column}</th>`);
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${title}>
    <table><thead><tr>${head}</tr></thead><tbody>${children}</tbody></table>
  </div>`;
}

const remaining = (at, now) => age(now, new Date(at));

/** Why calls of a provider wait or fail, as a line for all its models and one for each. */
function reasons(provider, models, metrics, now) {
  const circuit = (state, until) => {
    if (state === "open") return [`circuit open${until ? ` for another ${remaining(until, now)}` : ""}`];
    return state === "half_open" ? ["circuit half open, one call at a time"] : [];
  };
  const running = { provider, state: "running" };
  const capacity = metrics.sum("gateway_capacity", running);
  const isOwn = ({ labels }) => labels.provider === provider && !labels.model;
  const all = [
    ...["open", "half_open"].flatMap((state) =>
      metrics.sum("gateway_circuit", { provider, model: "", state }) ? circuit(state) : []),
    ...(capacity && metrics.sum("gateway_calls", running) >= capacity
      ? [`at its limit of ${capacity} calls at once`] : []),
    ...metrics.all("gateway_limit_per_minute").filter(isOwn)
      .map(({ labels, value }) => `limited to ${compact(value)} ${labels.of} per minute`),
  ];
  const each = models.map(({ model, circuit: { state, until }, held_until: held, concurrency }) => {
    const why = [
      ...circuit(state, until),
      ...(held ? [`rate limited (429) for another ${remaining(held, now)}`] : []),
      ...(concurrency ? [`down to ${concurrency} calls at once after 429s`] : []),
    ];
    return `${model}: ${why.join("; ")}`;
  });
  return [...(all.length ? [all.join("; ")] : []), ...each];
}

function Providers({ metrics, health }) {
  const now = useNow();
  const rows = ([name, { state, waiting, models = [] }]) => {
    const why = reasons(name, models, metrics, now);
    return html`<tr key=${name}>
        <th scope="row"><${Text}>${name}</></th>
        <td><${Badge} of=${state} /></td>
        <td class="number">${compact(metrics.sum("gateway_calls", { provider: name, state: "running" }))}</td>
        <td class="number">${compact(waiting)}</td>
      </tr>
      ${why.length > 0 && html`<tr key=${`${name} why`} class="why"><td colspan="4" class="soft">
        ${why.map((line) => html`<p key=${line}><${Text}>${line}</></p>`)}</td></tr>`}`;
  };
  return html`<section class="panel">
    <h2>Providers</h2>
    <${Table} title="Providers" columns=${["Name", "State", "In flight", "Waiting"]}
      numbers=${["In flight", "Waiting"]}>
      ${Object.entries(health?.providers ?? {}).map(rows)}
    </>
  </section>`;
}

function ApprovalsPanel({ waiting, own }) {
  const now = useNow();
  const { approvals = [], grants = [], more = 0 } = waiting ?? {};
  const row = ({ session: { tenant, name } }, cells) =>
    html`<tr><td class="name"><a href=${sessionHref(tenant, name)}><${Text}>${
      tenant === own ? "" : `${tenant}/`}${name}</></a></td>${cells}</tr>`;
  const shown = approvals.slice(0, 50);
  const others = approvals.length - shown.length + more;
  return html`<section class="panel">
    <h2>Waiting for approval</h2>
    ${shown.length + grants.length
      ? html`<${Table} title="Waiting for approval" columns=${["Session", "Tool", "Waiting", "Arguments"]}
          numbers=${["Waiting"]}>
          ${shown.map((one) =>
            row(one, html`<td class="mono"><${Text}>${one.call.name}</></td>
              <td class="number">${age(one.since, now)}</td>
              <td class="mono preview"><${Text}>${one.call.arguments.slice(0, 300)}</></td>`))}
          ${grants.map((one) =>
            row(one, html`<td colspan="3">needs <${Text}>${one.tools.join(" or ")}</>, gives up in ${
              remaining(one.until, now)}</td>`))}
          ${others > 0 && html`<tr><td colspan="4" class="soft">and ${grouped(others)} more</td></tr>`}
        </>`
      : html`<p class="soft">${waiting ? "No calls are waiting for approval." : "Loading…"}</p>`}
  </section>`;
}

/** What the figures cover. */
function scope(metrics) {
  const nodes = metrics.sum("nodes");
  if (nodes < 2) return "Counts and totals start when the server starts.";
  const forwards = compact(metrics.sum("node_forwards_total"));
  const adopted = compact(metrics.sum("node_adoptions_total"));
  const lease = duration(1_000 * metrics.sum("node_lease_age_seconds"));
  return `Figures are from one of ${grouped(nodes)} live nodes; counts and totals are since it started. It renewed
    its lease ${lease} ago, forwarded ${forwards} requests to other nodes, and adopted ${adopted} of their sessions.`;
}

/** The view of the whole server. `health` is what `/readyz` answers, `waiting` what waits for a person. */
export function Overview({ caller, health, waiting }) {
  const [version, setVersion] = useState(recorder.version);
  useEffect(() => {
    recorder.listeners.add(setVersion);
    return () => recorder.listeners.delete(setVersion);
  }, []);
  const { metrics } = recorder.recent.at(-1) ?? {};
  if (!metrics) return html`<h1>Overview</h1><p class="soft">Loading…</p>`;
  const budgets = metrics.by("budgets_total").filter(([, count]) => count);
  return html`<div class="overview">
    <h1>Overview</h1>
    <${Tiles} metrics=${metrics} waiting=${waiting} />
    <div class="grid">
      ${CHARTS.map(
        (chart) => html`<${Chart} key=${chart.title} ...${chart} version=${version} seconds=${SECONDS}
          times=${recorder.times} rows=${chart.series.map(({ row }) => recorder.rows[row])} />`,
      )}
    </div>
    <div class="grid pair">
      <${ApprovalsPanel} waiting=${waiting} own=${caller.tenant} />
      <${Providers} metrics=${metrics} health=${health} />
    </div>
    <div class="grid">
      <${Bars} title="Outcomes" pairs=${metrics.by("queries_total")} />
      <${Bars} title="Signals" pairs=${metrics.by("signals_total")} />
      <${Bars} title="Fallbacks" pairs=${metrics.by("fallbacks_total")} />
      <${Bars} title="Budgets" empty="No budget has run out or come close."
        pairs=${budgets.map(([name, count]) => [name.replace(".", " "), count])} />
    </div>
    <p class="soft">${scope(metrics)}</p>
  </div>`;
}
