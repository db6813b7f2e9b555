// Hostile text from people, models, tools and files stays text, in every view and in a report.

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { go, press, send, signIn, tests, timeline, waitForText, waiting } from "./page.mjs";
import { call, done, more, script, Server } from "./served.mjs";

const HEBREW = "\u05e9\u05dc\u05d5\u05dd";
const EVIL = `\u202egnp.exe\u202c \u2067${HEBREW}\u2069 \u001b[31mred\u0007 \u0000nul
    <img src=x onerror="window.__pwned = 1"> <script>window.__pwned = 1</script></script><svg onload=alert(1)>
    [click](javascript:window.__pwned=1) ![](https://evil.example/p.png) <a href="javascript:alert(1)">a</a>
    <https://evil.example/"onclick=alert(1)>`;
const FILE = "<img src=x onerror=alert(1)>.rs";

const server = new Server({ files: { [FILE]: `// needle ${EVIL.replaceAll(/[\0\n]/g, "")}` } });
const check = tests(server);
const CALLS = [call("code_search", { query: "needle" }), call("<script>alert(1)</script>\u202e", { [EVIL]: EVIL }),
    call("note_write", { note: "a.md", text: EVIL })];
const TURNS = [{ reply: `${EVIL} ${more(EVIL)}`, tool_calls: CALLS }, { reply: `${EVIL} ${done}` }];

/** What a text has done to the page: nothing. */
const harm = () => {
    const app = document.getElementById("app");
    const risky = "script, link, img:not([src$='page/icon.svg']), iframe, object, embed, svg, base, style, meta, " +
        "[onerror], [onload], [onclick]";
    const all = [...app.querySelectorAll("*")];
    const texts = [document.title, app.textContent];
    for (const { attributes } of all) texts.push(...[...attributes].map(({ value }) => value));
    const isBare = ({ data, parentElement }) =>
        /[\u0590-\u05ff]/.test(data) && !parentElement.closest("bdi, [dir=auto], option");
    const walker = document.createTreeWalker(app, NodeFilter.SHOW_TEXT, (node) =>
        (isBare(node) ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP));
    const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;
    return {
        ran: window.__pwned,
        outside: [...document.body.children].map(({ localName }) => localName).join(" "),
        elements: all.filter((one) => one.matches(risky)).map((one) => one.outerHTML),
        addresses: all.map(({ href, src }) => href ?? src ?? "").filter((url) => /^javascript:/i.test(url)),
        controls: texts.filter((text) => controls.test(text)).map((text) => text.slice(0, 200)),
        mixed: walker.nextNode()?.data,
    };
};
const NONE = { ran: undefined, outside: "div noscript", elements: [], addresses: [], controls: [], mixed: undefined };

/** Waits until the text is there, unfolds everything, and looks for harm. */
async function assertHarmless(page, place, wanted = NONE) {
    await waitForText(place, "<img src=x onerror=");
    const folded = page.locator("details:not([open]), .entry:not(:has(.inside))");
    while (await folded.count()) await folded.evaluateAll((all) => all.forEach((one) => (one.open = true)));
    assert.deepEqual(await page.evaluate(harm), wanted);
}

check("hostile text stays text in every view", async (page) => {
    await server.api("/api/sessions/hostile/messages", { text: EVIL });
    await signIn(page, server, "chat");
    const session = await send(page, script(TURNS, EVIL));
    await waitForText(waiting(page), "note_write");
    await assertHarmless(page, page.locator(".markdown"));
    await go(page, `sessions/default/${session}`);
    await assertHarmless(page, waiting(page));
    await go(page, "sessions");
    await assertHarmless(page, page.getByRole("row"));
    await go(page, "");
    await assertHarmless(page, page.getByRole("cell"));

    await server.api("/api/control", { verb: "steer", session, text: EVIL });
    await go(page, `sessions/default/${session}`);
    await press(page, "Deny…");
    await page.getByRole("dialog").getByRole("textbox").fill(EVIL);
    await press(page, "Deny");
    await waitForText(page.getByRole("article"), "answered");
    await waitForText(timeline(page), "\\u202egnp.exe");
    await assertHarmless(page, timeline(page));
    await waitForText(timeline(page), `${FILE}:1: // needle `);
    await go(page, `chat/${session}`);
    await assertHarmless(page, page.locator(".tools"));
    await waitForText(page.locator(".markdown"), "click (javascript:window.__pwned=1)");

    server.run("sessions", "show", session, "--html", "report.html");
    await page.goto(pathToFileURL(join(server.folder, "report.html")).href);
    await waitForText(page.getByRole("article"), "answered");
    await assertHarmless(page, timeline(page), { ...NONE, outside: "main script script" });
}, /^(file:.*\/report\.html|data:text\/javascript,.*)$/);

check("names that could be markup are refused", async (page) => {
    await signIn(page, server);
    for (const name of ["<img src=x>", "a\u202eb", "a\u0000b"]) {
        await assert.rejects(server.api("/api/sessions", { name }), /name/);
        await go(page, `sessions/default/${encodeURIComponent(name)}`);
        await page.getByRole("alert").waitFor();
        assert.deepEqual(await page.evaluate(harm), NONE);
    }
}, /status of 40[04]/);

check("a script within the page does not run", async (page) => {
    await signIn(page, server);
    await page.evaluate(() => {
        document.body.append(Object.assign(document.createElement("script"), { textContent: "window.__pwned = 1" }));
        document.body.insertAdjacentHTML("beforeend", "<button onclick='window.__pwned = 1'>Inline</button>");
    });
    await press(page, "Inline");
    assert.equal(await page.evaluate(() => window.__pwned), undefined);
    for (const path of ["/", "/page/main.js", "/page/style.css"]) {
        const policy = (await fetch(server.url + path)).headers.get("content-security-policy");
        assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
    }
}, /Content Security Policy/);
