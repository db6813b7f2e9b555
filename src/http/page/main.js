// The page's frame: sign-in, navigation, appearance, and the state of the server.

import { control, get, isPermanent, queryString, setKey } from "./api.js";
import { Chat } from "./chat.js";
import { visible } from "./format.js";
import { recorder } from "./metrics.js";
import { Overview } from "./overview.js";
import { Session } from "./session.js";
import { Sessions } from "./sessions.js";
import { Failure, html, instead, render, Text, useEffect, useMemo, usePoll, useRef, useState } from "./ui.js";

const ICON = new URL("./icon.svg", import.meta.url).href;

/** Decodes a part of a URL; returns it unchanged if malformed. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What the address points to: `{path, view, tenant, name, query}`. */
function route() {
  const [path, query] = location.hash.slice(1).split("?");
  const [, first = "", ...names] = path.split("/");
  const [tenant, name] = names.map(decoded);
  const rest = { path, query: Object.fromEntries(new URLSearchParams(query)) };
  if (first === "sessions" && name) return { ...rest, view: "session", tenant, name };
  if (first === "sessions") return { ...rest, view: "sessions" };
  return first === "chat" ? { ...rest, view: "chat", name: tenant } : { ...rest, view: "overview" };
}

/** The key of a link such as `#key=…`, which leaves the address at once. */
function keyOfLink() {
  const [, key] = /^#key=(.+)/.exec(location.hash) ?? [];
  if (key) history.replaceState(null, "", location.pathname);
  return key && decoded(key);
}

function SignIn({ error, onKey }) {
  const input = useRef();
  useEffect(() => {
    document.title = "Oracle";
    input.current.focus();
  }, []);
  return html`<main class="sign-in">
    <form class="panel" onSubmit=${instead(() => onKey(input.current.value))}>
      <h1 class="row"><img src=${ICON} alt="" width="28" height="28" /> Oracle</h1>
      <label>
        <span>Key</span>
        <input ref=${input} type="password" autocomplete="off" aria-describedby="key-help" />
      </label>
      <${Failure} error=${error?.status === 401 ? { message: "The key is unknown, expired or revoked." } : error} />
      <button class="primary">Sign in</button>
      <div id="key-help" class="soft">
        <p><code>oracle keys create --name ann</code> creates a user key; add <code>--role admin</code> for an admin
          key. The key stays in this tab until you close or reload it.</p>
        <p>A server without keys prints a sign-in link when it starts. To use only the chat, leave the field empty.</p>
      </div>
    </form>
  </main>`;
}

function Drain() {
  const dialog = useRef();
  const [error, setError] = useState(null);
  const close = () => dialog.current.close();
  return html`<button class="danger" onClick=${() => dialog.current.showModal()}>Drain the server…</button>
    <dialog ref=${dialog} aria-labelledby="drain-title">
      <form onSubmit=${instead(() => control("drain").then(close, setError))}>
        <h2 id="drain-title">Drain the server?</h2>
        <p>The server stops accepting messages and lets running questions finish. Only a restart reverses this.</p>
        <${Failure} error=${error} />
        <div class="row">
          <button type="button" autofocus onClick=${close}>Cancel</button>
          <button class="danger">Drain</button>
        </div>
      </form>
    </dialog>`;
}

/** Asks whether a link may change who is signed in: what is asked afterwards goes to its key's tenant. */
function OtherKey({ name, onStay, onSwitch }) {
  const dialog = useRef();
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} aria-labelledby="other-key-title" onClose=${onStay}>
    <form onSubmit=${instead(onSwitch)}>
      <h2 id="other-key-title">Sign in with the key of a link?</h2>
      <p>A link wants to sign <${Text}>${name}</> out and this tab in with a key of its own. Whoever made the key can
        then read what you ask. Continue only if you expected this.</p>
      <div class="row">
        <button type="button" autofocus onClick=${() => dialog.current.close()}>Stay signed in</button>
        <button class="danger">Use the link's key</button>
      </div>
    </form>
  </dialog>`;
}

function setTheme(theme) {
  localStorage.setItem("theme", theme);
  document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new Event("theme"));
}

function Account({ caller, onSignOut }) {
  const isAdmin = caller.role === "admin";
  return html`<button class="account" popovertarget="account">
      <${Text}>${caller.name}</> <span class="soft wide">${caller.role}</span>
    </button>
    <div id="account" class="panel" popover="auto">
      <dl>
        <dt>Name</dt><dd><${Text}>${caller.name}</></dd> <dt>Tenant</dt><dd><${Text}>${caller.tenant}</></dd>
        <dt>Role</dt><dd>${caller.role}</dd> <dt>Oracle</dt><dd>${caller.version}</dd>
      </dl>
      ${caller.keyless && !isAdmin && html`<p class="soft">
        To operate the server, open the link that it printed when it started.</p>`}
      <label>
        <span>Appearance</span>
        <select value=${document.documentElement.dataset.theme} onChange=${(event) => setTheme(event.target.value)}>
          <option value="">System</option><option value="light">Light</option><option value="dark">Dark</option>
        </select>
      </label>
      ${isAdmin && html`<${Drain} />`}
      <button onClick=${onSignOut}>Sign out</button>
    </div>`;
}

function problem(health, error) {
  if (error) return isPermanent(error) ? error.message : "The server does not respond. Reconnecting…";
  if (!health) return null;
  if (health.draining) return "The server is draining: it accepts no new messages.";
  if (health.journal !== "ok") return `The journal is ${health.journal}. Reconnecting…`;
  return health.ready ? null : "No model provider is available at the moment.";
}

/** All that waits for a person: calls that need an approval, and questions that need a tool (`granting` of them). */
async function readWaiting(caller, signal) {
  const { states, sessions } = await get(`/api/activity${queryString({ limit: 200 })}`, { signal });
  const waits = sessions.filter(({ state, calls }) => calls > 0 || state === "grant");
  const granting = states.grant ?? 0;
  const count = Math.max(waits.length, (states.approval ?? 0) + granting);
  if (caller.role !== "admin") return { count, granting };
  const tenants = new Set([caller.tenant, ...waits.map((session) => session.tenant)]);
  const each = await Promise.all([...tenants].map((tenant) => control("approvals", { tenant, limit: 100 })));
  const all = (kind) => each.flatMap((one) => one[kind] ?? []);
  const unlisted = each.reduce((sum, one) => sum + one.more, 0);
  const approvals = all("approvals").sort((a, b) => a.since.localeCompare(b.since));
  const grants = all("grants");
  // The table has all tenants, but counts sessions.
  const listed = approvals.length + grants.length;
  const more = Math.max(unlisted, count - listed);
  return { approvals, grants, more, count: listed + more, granting: Math.max(granting, grants.length) };
}

function Shell({ caller, onSignOut }) {
  const [at, setAt] = useState(route);
  const [linked, setLinked] = useState(null);
  const [health, down] = usePoll((signal) => get("/readyz", { signal, also: 503 }), 2_000);
  const [waiting, refused] = usePoll((signal) => readWaiting(caller, signal), 3_000);
  const isAdmin = caller.role === "admin";
  const main = useRef();

  useEffect(() => {
    const end = new AbortController();
    const follow = ({ oldURL }) => {
      const key = keyOfLink();
      // On a server without keys, the link has the admin key, and everybody's tenant is the same.
      if (key && caller.keyless) onSignOut(key);
      else if (key) setLinked({ key, from: oldURL });
      else setAt({ ...route(), moved: true });
    };
    addEventListener("hashchange", follow, { signal: end.signal });
    if (isAdmin) recorder.run(end.signal);
    return () => end.abort();
  }, []);
  useEffect(() => {
    if (refused?.status === 401) onSignOut("", refused);
  }, [refused]);

  const shown = at.view === "overview" && !isAdmin ? "chat" : at.view;
  const View = { overview: Overview, sessions: Sessions, session: Session, chat: Chat }[shown];
  const title = { overview: "Overview", sessions: "Sessions", session: at.name, chat: at.name ?? "Chat" }[shown];
  const count = waiting?.count ? `(${waiting.count}) ` : "";
  useEffect(() => {
    document.title = visible(`${count}${title} · Oracle`);
  }, [count, title]);

  useEffect(() => {
    if (!at.moved) return;
    const heading = main.current.querySelector("h1") ?? main.current;
    heading.tabIndex = -1;
    heading.focus();
  }, [at.path]);

  // Views other than the overview do not depend on what is polled here, and are not drawn again for it.
  const live = shown === "overview" ? { health, waiting } : {};
  const body = useMemo(() => html`<${View} key=${at.path} caller=${caller} ...${at} ...${live} />`,
    [at.path, queryString(at.query), live.health, live.waiting]);
  const current = shown === "session" ? "sessions" : shown;
  const link = (to, name, extra) =>
    html`<a href=${`#/${to}`} aria-current=${name.toLowerCase() === current ? "page" : undefined}>${name}${extra}</a>`;
  const stay = () => {
    history.replaceState(null, "", linked.from);
    setLinked(null);
  };
  const badge = count && html`<span class="count">${waiting.count}<span class="visually-hidden"> waiting</span></span>`;
  return html`<a class="skip" href="#main" onClick=${instead(() => main.current.focus())}>Skip to the content</a>
    <header class="bar">
      <div>
        <img src=${ICON} alt="" width="24" height="24" />
        <nav aria-label="Views">
          ${isAdmin && link("", "Overview")} ${link("sessions", "Sessions", badge)} ${link("chat", "Chat")}
        </nav>
        <${Account} caller=${caller} onSignOut=${() => onSignOut("")} />
      </div>
      <p role="status" class="trouble">${problem(health, down)}</p>
    </header>
    ${linked && html`<${OtherKey} name=${caller.name} onStay=${stay} onSwitch=${() => onSignOut(linked.key)} />`}
    <main id="main" ref=${main} tabindex="-1" data-view=${shown}>${body}</main>`;
}

function Page() {
  const [caller, setCaller] = useState();
  const [error, setError] = useState(null);
  const signIn = async (key) => {
    setKey(key);
    try {
      setCaller(await get("/api/caller"));
    } catch (refusal) {
      // Without a key, a 401 is the normal first load, not an error.
      setError(refusal.status === 401 && !key ? null : refusal);
      setCaller(null);
    }
  };
  const signOut = (key, why = null) => {
    setKey("");
    setCaller(null);
    setError(why);
    if (key) signIn(key);
  };
  useEffect(() => {
    signIn(keyOfLink() ?? "");
  }, []);
  if (caller === undefined) return null;
  return caller
    ? html`<${Shell} caller=${caller} onSignOut=${signOut} />`
    : html`<${SignIn} error=${error} onKey=${signIn} />`;
}

document.documentElement.dataset.theme = localStorage.getItem("theme") ?? "";
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("theme")));
render(html`<${Page} />`, document.getElementById("app"));
