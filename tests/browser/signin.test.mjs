// Keys: who signs in how, and what each role sees.

import assert from "node:assert/strict";
import { go, press, REFUSED, signIn, tests, timeline, waitForText } from "./page.mjs";
import { done, Server } from "./served.mjs";

const server = new Server({ keys: true });
const check = tests(server, async () => {
    await server.ask("ours", [{ reply: `Here. ${done}` }], "Where is it?");
    await server.ask("theirs", [{ reply: `There. ${done}` }], "What is sold?", server.other);
    await server.event("ours", "query.finished");
});
const views = (page) => page.getByRole("navigation", { name: "Views" }).getByRole("link").allTextContents();
const session = (page, name) => page.getByRole("link", { name, exact: true });

async function byForm(page, key) {
    await page.getByLabel("Key", { exact: true }).fill(key);
    await press(page, "Sign in");
}

check("a link signs in, and its key leaves the address", async (page) => {
    await signIn(page, server, "sessions");
    assert.equal(page.url(), `${server.url}/#/sessions`);
    await page.goBack();
    assert.equal(page.url(), `${server.url}/`);
});

check("a link to a signed-in tab asks before it changes who is signed in", async (page) => {
    await signIn(page, server, "sessions");
    const follow = () => page.evaluate((key) => void (location.hash = `#key=${key}`), server.user);
    const question = page.getByRole("dialog", { name: "Sign in with the key of a link?" });
    await follow();
    await question.waitFor();
    await press(page, "Stay signed in");
    await question.waitFor({ state: "detached" });
    assert.equal(page.url(), `${server.url}/#/sessions`);
    assert.deepEqual(await views(page), ["Overview", "Sessions", "Chat"]);
    await follow();
    await press(page, "Use the link's key");
    await page.getByRole("heading", { name: "New conversation" }).waitFor();
    assert.deepEqual(await views(page), ["Sessions", "Chat"]);
});

check("a wrong key is refused in words, and the right one is accepted", async (page) => {
    await page.goto(server.url);
    await byForm(page, "oracle_wrong");
    await waitForText(page.getByRole("alert"), "The key is unknown, expired or revoked.");
    await byForm(page, server.key);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
}, REFUSED);

check("an administrator sees the sessions of all tenants, and acts on them", async (page) => {
    await signIn(page, server, "sessions");
    assert.deepEqual(await views(page), ["Overview", "Sessions", "Chat"]);
    await session(page, "ours").waitFor();
    await session(page, "shop/theirs").click();
    await waitForText(page.getByRole("article"), "There.");
    await page.getByRole("button", { name: "Steer…" }).waitFor();
});

check("another key sees the conversations of its tenant, and does not operate", async (page) => {
    await page.goto(server.url);
    await byForm(page, server.user);
    await page.getByRole("heading", { name: "New conversation" }).waitFor();
    assert.deepEqual(await views(page), ["Sessions", "Chat"]);
    await go(page, "sessions");
    await session(page, "ours").waitFor();
    assert.equal(await page.getByRole("link", { name: /theirs/ }).count(), 0);
    await session(page, "ours").click();
    await waitForText(timeline(page), "answered after 1 turn");
    assert.equal(await page.getByRole("button", { name: /Steer|Pause|Interrupt|More|Fork/ }).count(), 0);
    await go(page, "sessions/shop/theirs");
    await waitForText(page.getByRole("alert"), /^Only an administrator can open a session of another tenant\.$/);
    assert.equal(await page.getByText("There.").count(), 0);
}, REFUSED);
