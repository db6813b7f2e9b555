// What every view uses: markup, hooks, and small parts.

import { h, render } from "./vendor/preact.js";
import { useCallback, useEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";
import { poll } from "./api.js";
import { date, time, visible, words } from "./format.js";

export const html = htm.bind(h);
export { render, useCallback, useEffect, useMemo, useRef, useState };

/** What `read(signal)` returned last, and why the last attempt failed: `[value, error]`. */
export function usePoll(read, period, dependencies = []) {
  const [value, setValue] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    const end = new AbortController();
    poll(read, period, { value: setValue, state: setError }, end.signal);
    return () => end.abort();
  }, dependencies);
  return [value, error];
}

/** The current time, renewed every second while the view is shown. */
export function useNow() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** Text from people, models and tools: never markup, and nothing invisible. */
export const Text = ({ children }) => html`<bdi>${visible([children].flat().join(""))}</bdi>`;

/** A state or outcome in a colour of its own; the word says the same. */
export const Badge = ({ of, title }) =>
  html`<span class="badge" data-of=${of} title=${title && visible(title)}>${words(of)}</span>`;

export const When = ({ at }) => html`<time datetime=${at} title=${date(at)}>${time(at)}</time>`;

/** An event's handler that replaces what the browser would do. */
export const instead = (handle) => (event) => {
  event.preventDefault();
  handle(event);
};

export const Failure = ({ error }) => error && html`<p class="failure" role="alert"><${Text}>${error.message}</></p>`;

/** Lets the page draw at most once a frame, however often it is called. */
export function perFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}
