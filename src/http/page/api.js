// Requests to the server. The key is kept in this tab's memory only.

/** A refusal by the server, or its absence (`status` 0). */
export class ApiError extends Error {
  constructor(status, message, code) {
    super(message);
    Object.assign(this, { status, code });
  }
}

/** Whether the server would refuse the same request again. */
export const isPermanent = ({ status }) => status >= 400 && status < 500 && ![408, 429].includes(status);

const TIMEOUT = 10_000;
/** How long a stream may be silent: the server sends at least a comment every 15 s. */
const SILENCE = 35_000;

let key = "";

/** Sets the key of all further requests; empty for none. */
export function setKey(text) {
  key = text.trim();
}

async function request(path, { method = "GET", body, headers = {}, signal, also } = {}) {
  const all = { ...headers };
  if (key) all.authorization = `Bearer ${key}`;
  if (body !== undefined) all["content-type"] = "application/json";
  let response;
  try {
    // Relative to this module, because a host may have the page below a path of its own.
    response = await fetch(new URL(`..${path}`, import.meta.url), {
      method,
      headers: all,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "omit",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not respond.");
  }
  if (response.ok || response.status === also) return response;
  const { error = {} } = await response.json().catch(() => ({}));
  throw new ApiError(response.status, error.message ?? `The server answered ${response.status}.`, error.code);
}

const within = (ms, options = {}) =>
  ({ ...options, signal: AbortSignal.any([AbortSignal.timeout(ms), options.signal].filter(Boolean)) });

export const get = async (path, options) => (await request(path, within(TIMEOUT, options))).json();
export const text = async (path, options) => (await request(path, within(TIMEOUT, options))).text();
export const post = async (path, body, options) =>
  (await request(path, within(TIMEOUT, { ...options, method: "POST", body }))).json();

/** Executes a verb of the control channel. */
export const control = (verb, fields = {}) => post("/api/control", { verb, ...fields });

/** A query string of the fields that have a value. */
export function queryString(fields) {
  const set = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return set.length ? `?${new URLSearchParams(set)}` : "";
}

/** The blocks of a stream of server-sent events, `{event, data}` with `data` parsed. `onBytes()` hears all bytes. */
async function* events(body, onBytes) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const found = { data: "" };
        for (const line of block.split("\n")) {
          const [, name, value] = /^(\w+): (.*)/s.exec(line) ?? [];
          if (name) found[name] = name === "data" ? found.data + value : value;
        }
        if (found.data) yield { ...found, data: JSON.parse(found.data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Waits, at most until `signal` aborts. */
export const sleep = (ms, signal) =>
  new Promise((resolve) => {
    const end = () => {
      signal?.removeEventListener("abort", end);
      resolve();
    };
    setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });

/** Waits until the page is visible. */
async function shown(signal) {
  while (document.hidden && !signal.aborted) await sleep(500, signal);
}

/**
 * Follows a stream until `signal` aborts or the server refuses it for good, and connects again when it breaks.
 * `path()` is asked for each connection, so that it can continue behind what was seen. `on.event(event)` takes each
 * event, `on.state(error)` the state of the connection: null when it is open. A hidden page has no connection, because
 * a browser has only six for all its tabs.
 */
export async function follow(path, on, signal) {
  for (let failures = 0; !signal.aborted; ) {
    await shown(signal);
    const connection = new AbortController();
    const end = () => connection.abort();
    const onHide = () => document.hidden && end();
    let timer = setTimeout(end, TIMEOUT);
    const onBytes = () => {
      clearTimeout(timer);
      timer = setTimeout(end, SILENCE);
    };
    document.addEventListener("visibilitychange", onHide, { signal });
    try {
      const both = AbortSignal.any([signal, connection.signal]);
      const response = await request(path(), { headers: { accept: "text/event-stream" }, signal: both });
      onBytes();
      on.state(null);
      for await (const event of events(response.body, onBytes)) {
        failures = 0;
        on.event(event);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (document.hidden) continue;
      const failure = error instanceof ApiError ? error : new ApiError(0, "The connection broke.");
      on.state(failure);
      if (isPermanent(failure)) return;
    } finally {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onHide);
    }
    failures += 1;
    await sleep(Math.min(500 * 2 ** failures, 8000) * (0.75 + Math.random() / 2), signal);
  }
}

/** Calls `read` now and every `period` ms while the page is visible, until `signal` aborts or it is refused. */
export async function poll(read, period, on, signal) {
  while (!signal.aborted) {
    if (!document.hidden) {
      try {
        const value = await read(signal);
        if (signal.aborted) return;
        on.value(value);
        on.state(null);
      } catch (error) {
        if (signal.aborted) return;
        on.state(error);
        if (isPermanent(error)) return;
      }
    }
    await sleep(period, signal);
  }
}
