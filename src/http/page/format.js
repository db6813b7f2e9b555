// Numbers, times and names as people read them.

const whole = new Intl.NumberFormat("en");

/** 1,234,567 */
export const grouped = (number) => whole.format(Math.round(number));

/** 1,234 · 12.3k · 4.5M */
export function compact(number) {
  if (number < 10_000) return grouped(number);
  const [divisor, unit] = number < 1e6 ? [1e3, "k"] : number < 1e9 ? [1e6, "M"] : [1e9, "G"];
  const value = number / divisor;
  return (value < 100 ? value.toFixed(1) : value.toFixed(0)) + unit;
}

/** A rate or a measured value with three digits at most. */
export function measured(number) {
  if (!Number.isFinite(number)) return "–";
  return number === 0 ? "0" : number < 10 ? number.toFixed(1) : compact(number);
}

/** Billionths of a US dollar. */
export function money(nanos) {
  if (nanos === null || nanos === undefined) return "–";
  const dollars = nanos / 1e9;
  if (dollars === 0) return "$0";
  if (dollars >= 100) return `$${grouped(dollars)}`;
  return `$${dollars >= 0.01 ? dollars.toFixed(2) : dollars.toPrecision(2)}`;
}

/** The cost of calls; null if a price is unknown. */
export const cost = (nanos) => (nanos === null ? "unknown" : money(nanos));

/** The share of cacheable tokens that were read from the provider's cache; null if there were none. */
export function cacheShare({ cacheable_tokens: cacheable = 0, missed_tokens: missed = 0 }) {
  return cacheable > 0 ? 1 - missed / cacheable : null;
}

/** 340 ms · 4.2 s · 3 min 12 s · 2 h 5 min · 3 d 4 h */
export function duration(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 1_000) return `${Math.round(ms)}\u00a0ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)}\u00a0s`;
  const [big, small, bigUnit, smallUnit] =
    ms < 3_600_000
      ? [60_000, 1_000, "min", "s"]
      : ms < 86_400_000
        ? [3_600_000, 60_000, "h", "min"]
        : [86_400_000, 3_600_000, "d", "h"];
  const rest = Math.floor((ms % big) / small);
  return `${Math.floor(ms / big)}\u00a0${bigUnit}${rest ? ` ${rest}\u00a0${smallUnit}` : ""}`;
}

const clock = new Intl.DateTimeFormat("en", { timeStyle: "medium", hourCycle: "h23" });
const day = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

export const time = (at) => clock.format(new Date(at));
export const date = (at) => day.format(new Date(at));

/** How long ago, without what changes too fast to read: 4 s · 49 min · 2 h 5 min · 3 d 4 h */
export function age(at, now = Date.now()) {
  const ms = Math.max(0, now - new Date(at));
  if (ms >= 3_600_000) return duration(ms);
  return ms < 60_000 ? `${Math.floor(ms / 1_000)}\u00a0s` : `${Math.floor(ms / 60_000)}\u00a0min`;
}

export const percent = (share) => `${Math.round(share * 100)} %`;
export const words = (name) => String(name ?? "").replaceAll("_", " ");
export const totalTokens = (usage) => (usage ? usage.input_tokens + usage.output_tokens : 0);
/** The address of a session's view. */
export const sessionHref = (tenant, name) => `#/sessions/${encodeURIComponent(tenant)}/${encodeURIComponent(name)}`;

/** Shows control characters and invisible ones, such as those that reverse the text around them. */
export function visible(text) {
  // Not the joiners that scripts and emoji need.
  const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]|(?![\u200c\u200d])\p{Cf}/gu;
  return String(text).replace(hidden, (character) => {
    const code = character.codePointAt(0);
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}
