// The server's metrics, and what they were in the last ten minutes.

import { poll, text } from "./api.js";

/** How long charts look back, with a sample for each second. */
export const SECONDS = 600;
const WINDOW = 60; // seconds that quantiles are taken over
const RATE = 10; // seconds that rates are taken over

export const PEOPLE = ["approval", "grant", "client", "paused"];
const HISTOGRAMS = { model: "turn_model_seconds_bucket", own: "turn_own_seconds_bucket" };
const STATES = {
  people: PEOPLE, backing: "backing_off", tools: ["tools", "delegating", "ending"], preparing: ["waking", "preparing"],
  calling: ["calling", "compacting"],
};
const ROWS = ["turns", "tokens", "model50", "model99", "own50", "own99", ...Object.keys(STATES)];

/** Reads metrics in the OpenMetrics format; names are without `oracle_`. */
function parseMetrics(source) {
  const found = new Map();
  for (const line of source.split("\n")) {
    const [, name, labels = "", value] = /^oracle_(\w+)(?:\{(.*)\})? (\S+)/.exec(line) ?? [];
    if (!name) continue;
    if (!found.has(name)) found.set(name, []);
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, content]) => [label, content]);
    found.get(name).push({ labels: Object.fromEntries(pairs), value: Number(value) });
  }
  const all = (name) => found.get(name) ?? [];
  const matches = (labels, wanted) =>
    Object.entries(wanted).every(([label, values]) => [values].flat().includes(labels[label]));
  return {
    /** The samples of a metric: `{labels, value}`. */
    all,
    /** The sum of the samples that have these labels. */
    sum: (name, wanted = {}) =>
      all(name).reduce((sum, { labels, value }) => (matches(labels, wanted) ? sum + value : sum), 0),
    /** The samples of a metric with one label: `[label's value, value]`. */
    by: (name) => all(name).map(({ labels, value }) => [Object.values(labels)[0], value]),
  };
}

/** A quantile of what came to a histogram, in ms, by interpolation within a bucket; null if nothing came. */
function quantile(before, after, share) {
  const counts = after.map(({ value }, at) => value - before[at].value);
  const wanted = share * (counts.at(-1) ?? 0);
  if (!wanted) return null;
  const at = counts.findIndex((count) => count >= wanted);
  const low = at ? Number(after[at - 1].labels.le) : 0;
  const high = Number(after[at].labels.le);
  const below = at ? counts[at - 1] : 0;
  // The last bucket has no end: its `le` is `+Inf`, which Number reads as NaN.
  return 1_000 * (low + ((high - low || 0) * (wanted - below)) / (counts[at] - below));
}

/** Ten minutes of samples, in arrays of a fixed length, with null where nothing is known. */
class Recorder {
  version = 0;
  listeners = new Set();
  recent = []; // the samples of the last minute: `{at, metrics}`
  times = Array.from({ length: SECONDS }, (_, at) => Date.now() / 1_000 - SECONDS + at);
  rows = Object.fromEntries(ROWS.map((row) => [row, Array(SECONDS).fill(null)]));

  /** Samples every second until `signal` aborts. */
  run(signal) {
    const read = async () => ({ at: Date.now() / 1_000, metrics: parseMetrics(await text("/metrics", { signal })) });
    poll(read, 1_000, { value: (sample) => this.add(sample), state: () => {} }, signal);
  }

  add(sample) {
    const { at, metrics } = sample;
    const last = this.recent.at(-1);
    if (last && at - last.at > 5) this.push(last.at + 1, {}); // interrupts the lines
    // The counters of a server that has started again begin at zero.
    const restarted = last && metrics.sum("http_answers_total") < last.metrics.sum("http_answers_total");
    this.recent = [...(restarted ? [] : this.recent), sample].filter((one) => at - one.at <= WINDOW);
    const windowStart = this.recent[0];
    const rateStart = this.recent.find((one) => at - one.at < RATE);
    const rate = (...counter) =>
      at > rateStart.at ? (metrics.sum(...counter) - rateStart.metrics.sum(...counter)) / (at - rateStart.at) : null;
    const values = { turns: rate("turns_total"), tokens: rate("tokens_total", { kind: ["input", "output"] }) };
    for (const [row, name] of Object.entries(HISTOGRAMS)) {
      const before = windowStart.metrics.all(name);
      const after = metrics.all(name);
      values[`${row}50`] = quantile(before, after, 0.5);
      values[`${row}99`] = quantile(before, after, 0.99);
    }
    for (const [row, state] of Object.entries(STATES)) values[row] = metrics.sum("sessions_live", { state });
    this.push(at, values);
    this.version += 1;
    for (const changed of this.listeners) changed(this.version);
  }

  push(at, values) {
    const append = (row, value) => {
      row.shift();
      row.push(value ?? null);
    };
    append(this.times, at);
    for (const [name, row] of Object.entries(this.rows)) append(row, values[name]);
  }

  now = (row) => this.rows[row].at(-1) ?? NaN;

  /** What a counter grew by in an hour, at the pace of the last minute. */
  hourly = (name) => {
    const first = this.recent[0];
    const last = this.recent.at(-1);
    return (3_600 * (last.metrics.sum(name) - first.metrics.sum(name))) / Math.max(1, last.at - first.at);
  };
}

/** The samples of this tab. */
export const recorder = new Recorder();
