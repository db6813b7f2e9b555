// The page is for everybody: what axe-core finds, use by keyboard alone, and what the first load takes.

import assert from "node:assert/strict";
import axe from "axe-core";
import { go, press, REFUSED, signIn, tests, waitForText, waiting } from "./page.mjs";
import { call, done, more, Server, waitFor, write } from "./served.mjs";

const MARKDOWN = "# Place\n\nIn `lib.rs:2`:\n\n- **one**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted";
const server = new Server({ keys: true, files: { "lib.rs": "fn first() {}\nfn parse_invoice() {}\n" } });
const check = tests(server, async () => {
    const search = call("code_search", { query: "parse_invoice" });
    const first = { reply: `Looking. ${more("have to see the file")}`, tool_calls: [search] };
    await server.ask("finished", [first, { reply: `${MARKDOWN}\n\n${done}` }], "Where is it?");
    await server.ask("waiting", [{ reply: "I note it.", tool_calls: [write] }], "Note it");
    await server.event("finished", "query.finished");
    await server.event("waiting", "approval.requested");
});
const RULES = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], resultTypes: ["violations"] };
const SIZES = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];

/** Checks that axe-core finds nothing serious or critical, in both themes and sizes. */
async function audit(page, what) {
    const found = [];
    // `page.evaluate` is not subject to the policy of the page.
    if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe.source);
    for (const colorScheme of ["light", "dark"]) {
        for (const size of SIZES) {
            await page.emulateMedia({ colorScheme });
            await page.setViewportSize(size);
            const { violations } = await page.evaluate((rules) => window.axe.run(rules), RULES);
            for (const { id, impact, nodes } of violations.filter(({ impact }) => /serious|critical/.test(impact))) {
                const places = nodes.map(({ target, any }) => `${target} ${any[0]?.message ?? ""}`);
                found.push(`${what}, ${colorScheme}, ${size.width} px: ${id} (${impact}): ${places.join("; ")}`);
            }
        }
    }
    await page.setViewportSize(SIZES[0]);
    assert.deepEqual(found, []);
}

check("signing in has no accessibility violations", async (page) => {
    await page.goto(server.url);
    await page.getByLabel("Key", { exact: true }).fill("oracle_wrong");
    await press(page, "Sign in");
    await page.getByRole("alert").waitFor();
    await audit(page, "sign-in");
}, REFUSED);

const VIEWS = {
    "the overview": ["", (page) => waitForText(page.getByRole("cell"), "note_write")],
    "the list of sessions": ["sessions", (page) => page.getByRole("link", { name: "waiting", exact: true }).waitFor()],
    "a finished session": ["sessions/default/finished", (page) =>
        page.locator(".turn .entry > summary").filter({ hasText: "code_search" }).click()],
    "a waiting session": ["sessions/default/waiting", (page) => waiting(page).waitFor()],
    "a new conversation": ["chat", (page) => page.getByRole("heading", { name: "New conversation" }).waitFor()],
    "a conversation": ["chat/finished", (page) => page.locator(".tools summary").click()],
};
for (const [what, [view, ready]] of Object.entries(VIEWS)) {
    check(`${what} has no accessibility violations`, async (page) => {
        await signIn(page, server, view);
        await ready(page);
        await audit(page, what);
    });
}

const DIALOGS = {
    "menu of the account": ["", /^ops/],
    "question before draining": ["", /^ops/, "Drain the server…"],
    "menu of actions": ["sessions/default/waiting", "More"],
    "dialog of a budget": ["sessions/default/waiting", "More", "Budget…"],
    "question before interrupting": ["sessions/default/waiting", "Interrupt…"],
    "dialog of a denial": ["sessions/default/waiting", "Deny…"],
    "passage of a citation": ["chat/finished", "lib.rs:2"],
};
check("a table in an answer stays visible on a narrow screen", async (page) => {
    await signIn(page, server, "chat/finished");
    await page.setViewportSize(SIZES[1]);
    await page.locator(".markdown").getByRole("cell", { name: "2" }).waitFor();
});

check("menus and dialogs have no accessibility violations", async (page) => {
    await signIn(page, server);
    for (const [what, [view, ...buttons]] of Object.entries(DIALOGS)) {
        await go(page, view);
        for (const name of buttons) await press(page, name);
        const open = page.locator("dialog[open], :popover-open");
        await open.first().waitFor();
        await audit(page, what);
        while (await open.count()) await page.keyboard.press("Escape");
    }
});

const hasFocus = (locator) => locator.evaluate((element) => element === document.activeElement);
const waitForFocus = (locator) => waitFor(`the focus at ${locator}`, () => hasFocus(locator));

/** Presses Tab until the focus is there. */
async function tabTo(page, locator) {
    for (let steps = 0; !(await hasFocus(locator)); steps += 1) {
        assert.ok(steps < 40, `${locator} cannot be reached by Tab`);
        await page.keyboard.press("Tab");
    }
}

check("everything can be done by keyboard", async (page) => {
    const key = (name) => page.keyboard.press(name);
    const button = (name) => page.getByRole("button", { name, exact: true });
    await page.goto(server.url);
    await waitForFocus(page.getByLabel("Key", { exact: true }));
    await page.keyboard.type(server.key);
    await key("Enter");
    await page.getByRole("heading", { name: "Overview" }).waitFor();

    await tabTo(page, page.getByRole("navigation").getByRole("link", { name: "Sessions" }));
    await key("Enter");
    await waitForFocus(page.getByRole("heading", { name: "Sessions" }));
    await tabTo(page, page.getByRole("table", { name: "Sessions" }));
    const [waiting, finished] = ["waiting", "finished"].map((name) => page.getByRole("link", { name, exact: true }));
    await finished.waitFor();
    for (const [arrow, link] of [["ArrowDown", waiting], ["ArrowDown", finished], ["ArrowUp", waiting]]) {
        await key(arrow);
        await waitForFocus(link);
    }
    await key("Enter");
    await waitForFocus(page.getByRole("heading", { name: "waiting" }));

    await tabTo(page, button("Steer…"));
    await key("Enter");
    await waitForFocus(page.getByRole("dialog").getByLabel("Text"));
    await key("Escape");
    await waitForFocus(button("Steer…"));
    await tabTo(page, button("More"));
    await key("Enter");
    await tabTo(page, button("Grant a tool…"));
    await key("Enter");
    await waitForFocus(page.getByRole("dialog").getByLabel("Tool"));
    await key("Escape");
    await waitForFocus(button("More"));
    assert.equal(await page.getByRole("dialog").count(), 0);
}, REFUSED);

check("the first load is small", async (page, t) => {
    const finished = [];
    page.on("requestfinished", (request) => finished.push(request));
    await signIn(page, server);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await waitForText(page.locator(".tiles dd b"), /\d/);
    const ms = await page.evaluate(() => performance.now());
    const sizes = await Promise.all(finished.map(async (request) => {
        const { responseBodySize, responseHeadersSize } = await request.sizes();
        return [responseBodySize + responseHeadersSize, new URL(request.url()).pathname];
    }));
    const total = sizes.reduce((sum, [size]) => sum + size, 0);
    t.diagnostic(`${Math.round(total / 1024)} KiB in ${sizes.length} answers, figures after ${Math.round(ms)} ms`);
    for (const path of ["/", "/page/main.js", "/page/style.css", "/metrics"]) {
        assert.ok(sizes.some(([size, found]) => found === path && size > 0), path);
    }
    assert.ok(total < 150_000, `${total} bytes: ${sizes.sort(([a], [b]) => b - a).join(" ")}`);
});
