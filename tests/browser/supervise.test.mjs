// An operator watches questions and acts on them: each action leaves its event, and the page shows it.

import assert from "node:assert/strict";
import { AWAY, press, signIn, tests, timeline, turn, waitForGone, waitForText, waiting } from "./page.mjs";
import { done, lacks, more, Server, write } from "./served.mjs";

const server = new Server();
const check = tests(server);
const TURNS = [{ reply: `First. ${more("have to read on")}` }, { reply: `Then. ${more("have to read more")}` },
    { reply: `It is in lib.rs. ${done}` }];
const WRITE = [{ reply: "I note it.", tool_calls: [write] }, { reply: `Noted or not. ${done}` }];
const question = (page) => page.getByRole("article", { name: "Question 1" });
const field = (page, label) => page.getByRole("dialog").getByLabel(label);

async function askAndOpen(page, session, turns, about = "Where is it?") {
    await server.ask(session, turns, about);
    await signIn(page, server, `sessions/default/${session}`);
}

/** Opens a session, which the model does not answer before `server.resume()`. */
async function openRunning(page, session) {
    server.hold();
    await askAndOpen(page, session, TURNS);
    await turn(page, 1).waitFor();
}

check("turns appear as they happen", async (page) => {
    await openRunning(page, "watched");
    await waitForText(timeline(page), "not yet");
    assert.equal(await turn(page, 2).count(), 0);
    server.resume();
    await waitForText(turn(page, 1), "need turn, 80 % sure: have to read on");
    await waitForText(turn(page, 2), "by row 14: need turn: next turn");
    await waitForText(turn(page, 3), "by row 11: context sufficient: answered");
    await waitForText(question(page), "answered");
});

check("steering joins the running question", async (page) => {
    await openRunning(page, "steered");
    await press(page, "Steer…");
    await field(page, "Text").fill("Look at the tests first");
    await press(page, "Steer");
    const { payload } = await server.event("steered", "control.steered");
    assert.equal(payload.text, "Look at the tests first");
    await waitForText(question(page).locator(".bubble"), "Look at the tests first");
    await waitForText(timeline(page), "Look at the tests first");
});

check("a raised budget applies to the running question", async (page) => {
    await openRunning(page, "raised");
    await press(page, "More");
    await press(page, "Budget…");
    await field(page, /^Turns/).fill("42");
    await press(page, "Set");
    const { payload } = await server.event("raised", "control.budget_set");
    assert.equal(payload.limits.max_turns, 42);
    await page.locator("[role=meter][aria-label=Turns][aria-valuetext$='of 42']").waitFor();
});

check("a paused question goes on when it is resumed", async (page) => {
    await openRunning(page, "paused");
    await press(page, "Pause");
    await server.event("paused", "control.paused");
    server.resume();
    await server.event("paused", "turn.replied");
    await waitForText(page.locator(".session .badge"), "paused");
    await press(page, "Resume");
    const { seq } = await server.event("paused", "control.resumed");
    await waitForText(turn(page, 3), "answered");
    const [, second] = await server.events("paused", "turn.started");
    assert.ok(second.seq > seq, "the second turn began before the question was resumed");
});

check("an interruption asks first", async (page) => {
    await openRunning(page, "interrupted");
    await press(page, "Interrupt…");
    await press(page, "Cancel");
    await waitForGone(page.getByRole("dialog"));
    assert.deepEqual(await server.events("interrupted", "control."), []);
    await press(page, "Interrupt…");
    await press(page, "Interrupt");
    await server.event("interrupted", "control.cancelled");
    await waitForText(question(page), "cancelled");
    await waitForText(timeline(page), "cancelled after");
});

check("an approved call runs", async (page) => {
    await askAndOpen(page, "approved", WRITE);
    await waitForText(waiting(page), "found");
    await press(page, "Approve");
    const { payload } = await server.event("approved", "control.approval_answered");
    assert.equal(payload.verdict, "approved");
    await waitForText(turn(page, 1), "ok");
    await waitForText(question(page), "answered");
    await waitForGone(waiting(page));
});

check("a denied call does not run, and the model reads the reason", async (page) => {
    await askAndOpen(page, "denied", WRITE);
    await press(page, "Deny…");
    await field(page, /^Reason/).fill("Not in this folder");
    await press(page, "Deny");
    await server.event("denied", "control.approval_answered");
    const { payload } = await server.event("denied", "approval.answered");
    assert.deepEqual([payload.verdict, payload.reason], ["denied", "Not in this folder"]);
    await waitForText(turn(page, 1), "denied: Not in this folder");
    await waitForText(turn(page, 2), "answered");
    const requests = await fetch(`${server.mock.url}/requests`).then((response) => response.text());
    assert.match(requests, /Not in this folder/);
});

check("a granted tool lets the question go on", async (page) => {
    await askAndOpen(page, "granted", [{ reply: `I need it. ${lacks("web_fetch")}` }, { reply: `Done. ${done}` }]);
    await press(page, "Grant web_fetch");
    const { payload } = await server.event("granted", "control.tool_attached");
    assert.equal(payload.tool, "web_fetch");
    await waitForText(timeline(page), "web_fetch, by");
    await waitForText(question(page), "answered");
});

check("a fork continues from the turn that was chosen", async (page) => {
    await askAndOpen(page, "forked", TURNS);
    await waitForText(question(page), "answered");
    await turn(page, 2).getByRole("button", { name: "Fork here" }).click();
    assert.equal(await field(page, /its turn/).inputValue(), "2");
    await field(page, "Name of the new session").fill("branch");
    await press(page, "Fork");
    await page.waitForURL(/#\/sessions\/default\/branch$/);
    await server.event("branch", "control.forked");
    await waitForText(page.getByRole("heading", { level: 1 }), "branch");
    await waitForText(timeline(page), "from forked, up to event");
    assert.equal((await server.events("branch", "turn.started")).length, 2);
});

check("a question that was told to finish is continued", async (page) => {
    await openRunning(page, "continued");
    await press(page, "More");
    await press(page, "Finish now…");
    await press(page, "Finish now");
    await server.event("continued", "control.finished");
    server.resume();
    await waitForText(question(page), "forced");
    await press(page, "More");
    await press(page, "Continue…");
    await press(page, "Continue");
    const { payload } = await server.event("continued", "control.continued");
    assert.equal(payload.continues, 1);
    await waitForText(page.getByRole("article", { name: "Question 2" }), "answered");
});

check("a restarted session goes on with its question", async (page) => {
    await openRunning(page, "restarted");
    await press(page, "More");
    await press(page, "Restart…");
    await press(page, "Restart");
    await server.event("restarted", "control.restarted");
    server.resume();
    await waitForText(question(page), "answered");
});

check("a draining server says so, and takes no message", async (page) => {
    await signIn(page, server, "chat");
    await page.getByRole("button", { name: /admin/ }).click();
    await press(page, "Drain the server…");
    await press(page, "Drain");
    await waitForText(page.locator(".trouble"), "The server is draining: it accepts no new messages.");
    await server.kill();
    await server.up();
    await page.locator(".trouble:empty").waitFor({ state: "attached" });
}, AWAY);
