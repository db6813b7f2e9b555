// An Oracle server with a mock model behind it, in a folder that goes away with the process.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const { ORACLE, PATH } = process.env;
const [children, folders] = [new Set(), []];
process.on("exit", () => {
    for (const child of children) child.kill("SIGKILL");
    for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 9 });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

/** Waits until `read` returns something true, and returns that. */
export async function waitFor(what, read, seconds = 20) {
    for (const end = Date.now() + 1_000 * seconds; Date.now() < end; await pause(50)) {
        const value = await read();
        if (value) return value;
    }
    throw new Error(`not within ${seconds} s: ${what}`);
}

/** Starts an oracle process, and waits for the address that it prints. */
async function start(args, options) {
    const child = spawn(ORACLE, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    children.add(child);
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
    const over = new Promise((resolve) => child.on("exit", resolve).on("error", resolve));
    over.then(() => children.delete(child));
    const address = () => {
        if (child.exitCode !== null) throw new Error(`oracle ${args.join(" ")} ended: ${said}`);
        return /http:\/\/[\d.]+:\d+/.exec(said)?.[0];
    };
    const url = await waitFor(`an address of oracle ${args[0]}`, address);
    return { url, kill: (signal) => child.kill(signal), end: () => (child.kill("SIGKILL"), over) };
}

const config = (mock) => `
notes = { write = true, dir = "../notes" }
tools = { attachable = ["web_fetch"], grant_wait = "600s" }
web = { fetch = true }
model = { chain = ["mock/m"] }
[[providers]]
name = "mock"
dialect = "openai"
base_url = "${mock}/v1"
models = [{ name = "m", context_window = 60000, input = 3.0, output = 15.0 }]
`;

const signal = (type, fields) => `<signal type="${type}">${fields}<confidence>0.8</confidence></signal>`;
/** Signals of the model's: its answer is complete, it needs another turn, it needs a tool. */
export const done = signal("context_sufficient", "<sources_found>1</sources_found>");
export const more = (reason) => signal("need_turn", `<reason>${reason}</reason>`);
export const lacks = (tool) =>
    signal("need_capability", `<capability>${tool}</capability><reason>have to read a page</reason>`);

/** A question that the mock model answers by a script; `about` is what people read of it. */
export const script = (turns, about) => `mock: ${JSON.stringify({ turns }).replaceAll("<", "&lt;")} ${about}`;
/** A reply that takes three seconds. */
const WORDS = Array.from({ length: 60 }, (_, at) => `word${at} `);
export const slowly = (text) => ({ chunks: [...WORDS, text], delay_ms: 50 });
export const call = (name, fields) => ({ name, arguments: fields });
/** A call that waits for approval. */
export const write = call("note_write", { note: "a.md", text: "found" });

export class Server {
    /**
     * `files` are those of its project. With `keys` it asks for keys: it has `key` of an administrator, `user` of
     * somebody else in the same tenant, and `other` of another tenant.
     */
    constructor({ files = {}, keys = false } = {}) {
        Object.assign(this, { files, keys });
    }

    async start() {
        folders.push((this.folder = mkdtempSync(join(tmpdir(), "oracle-browser-"))));
        for (const name of ["project", "notes", "data"]) mkdirSync(join(this.folder, name));
        for (const [name, text] of Object.entries(this.files)) writeFileSync(join(this.folder, "project", name), text);
        this.options = { cwd: this.folder, env: { PATH, HOME: this.folder } };
        this.mock = await start(["dev", "mock-model", "--port", "0"]);
        writeFileSync(join(this.folder, "oracle.toml"), config(this.mock.url));
        const create = (...args) => this.run("keys", "create", "--name", ...args).trim();
        if (this.keys) {
            this.key = create("ops", "--tenant", "default", "--role", "admin");
            [this.user, this.other] = [create("ann", "--tenant", "default"), create("eve", "--tenant", "shop")];
        }
        await this.up("127.0.0.1:0");
        this.key ??= readFileSync(join(this.folder, "data/admin.key"), "utf8").trim();
    }

    /** Runs a command over the same data, and returns what it prints. */
    run = (...args) =>
        execFileSync(ORACLE, [...args, "--data-dir", "data"], { ...this.options, encoding: "utf8", stdio: "pipe" });

    /** Starts the server, the second time at the address that it had. */
    async up(listen = this.url.slice("http://".length)) {
        const files = ["--config", "oracle.toml", "--data-dir", "data", "--project", "project"];
        this.process = await start(["serve", "--listen", listen, ...files], this.options);
        this.url = this.process.url;
    }

    /** Kills the server at once. */
    kill = () => this.process.end();
    /** Stops the model where it is; `resume` lets it go on. */
    hold = () => this.mock.kill("SIGSTOP");
    resume = () => this.mock?.kill("SIGCONT");
    stop = () => Promise.all([this.process?.end(), this.mock?.end()]);

    /** A request to the API; a refusal is an error. */
    async api(path, body, key = this.key) {
        const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
        const method = body ? "POST" : "GET";
        const response = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
        const answer = await response.json();
        if (!response.ok) throw new Error(`${path}: ${response.status} ${answer.error.message}`);
        return answer;
    }

    /** Asks a question by a script. */
    ask = (session, turns, about, key) =>
        this.api(`/api/sessions/${session}/messages`, { text: script(turns, about) }, key);

    /** All events of a session, or those of a type. */
    async events(session, wanted = "") {
        const { events } = await this.api(`/api/sessions/${session}/events?limit=500`);
        return events.filter(({ type }) => type.startsWith(wanted));
    }

    /** Waits for an event of a session, and returns it. */
    event = (session, type) => waitFor(`${type} in ${session}`, async () => (await this.events(session, type))[0]);
}
