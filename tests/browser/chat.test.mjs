// The chat and a timeline while answers arrive, and when the server is killed meanwhile: nothing is lost or doubled.

import assert from "node:assert/strict";
import { AWAY, press, send, signIn, tests, timeline, waitForGone, waitForText, waiting } from "./page.mjs";
import { call, done, more, script, Server, slowly, waitFor, write } from "./served.mjs";

const server = new Server({ files: { "lib.rs": "fn first() {}\nfn parse_invoice() {}\n" } });
const check = tests(server);
const ANSWER = [slowly(`It is in lib.rs. ${done}`)];
const growing = (page) => page.locator(".growing");
const answers = (page) => page.locator(".talk .markdown");

/** Begins a conversation, and returns its session. */
async function startChat(page, turns) {
    await signIn(page, server, "chat");
    return send(page, script(turns, "Where is it?"));
}

/** Waits until an answer has begun to arrive, and stops the model there. */
async function holdMidAnswer(page, session) {
    await waitForText(growing(page), "word1 ");
    server.hold();
    assert.deepEqual(await server.events(session, "query.finished"), [], "the answer was complete too early");
}

/** Kills the server in an answer, starts it again once the page has said so, and waits for the end. */
async function restart(page, session) {
    await holdMidAnswer(page, session);
    await server.kill();
    await waitForText(page.locator(".trouble"), "The server does not respond. Reconnecting…");
    await page.getByRole("alert").waitFor();
    await server.up();
    server.resume();
    await server.event(session, "query.finished");
    await waitForGone(growing(page));
    await waitForGone(page.getByRole("alert"));
    await page.locator(".trouble:empty").waitFor({ state: "attached" });
}

/** Checks that the conversation has each message once, and the log each question. */
async function assertOnce(page, session, ...texts) {
    for (const text of texts) assert.equal(await answers(page).getByText(text).count(), 1, text);
    assert.equal(await page.locator(".bubble").count(), texts.length);
    assert.equal((await server.events(session, "query.accepted")).length, texts.length);
}

check("an answer grows as it arrives, and appears once", async (page) => {
    const session = await startChat(page, ANSWER);
    await holdMidAnswer(page, session);
    const length = async () => (await growing(page).textContent()).length;
    const before = await length();
    server.resume();
    await waitFor("more of the text", async () => (await length()) > before);
    await waitForGone(growing(page));
    await assertOnce(page, session, "It is in lib.rs.");
});

check("stopping ends the question, and the next one is answered", async (page) => {
    const session = await startChat(page, ANSWER);
    await holdMidAnswer(page, session);
    await press(page, "Stop");
    const { payload } = await server.event(session, "query.finished");
    assert.equal(payload.outcome, "cancelled");
    await waitForText(page.getByRole("article"), "cancelled");
    await waitForGone(page.getByRole("button", { name: "Stop" }));
    server.resume();
    await send(page, "And now?"); // The model sees one message of both questions, and plays the script of the first.
    await waitForText(page.getByRole("article", { name: "Question 2" }).locator(".markdown"), "It is in lib.rs.");
});

check("a citation opens the passage that a tool has shown", async (page) => {
    const search = call("code_search", { query: "parse_invoice" });
    await startChat(page, [{ reply: "", tool_calls: [search] }, { reply: `In \`lib.rs:2\`. ${done}` }]);
    await press(page, "lib.rs:2");
    const passage = page.getByRole("dialog", { name: "lib.rs:2" });
    await waitForText(passage, "fn parse_invoice() {}");
    await passage.getByRole("button", { name: "Close" }).click();
    await waitForGone(passage);
});

check("a call is approved where it waits", async (page) => {
    const session = await startChat(page, [{ reply: "I note it.", tool_calls: [write] }, { reply: `Noted. ${done}` }]);
    await waitForText(waiting(page), "note_write");
    await press(page, "Approve");
    const { payload } = await server.event(session, "control.approval_answered");
    assert.equal(payload.verdict, "approved");
    await waitForText(answers(page), "Noted.");
    await page.locator(".tools summary").click();
    await waitForText(page.locator(".tools"), "a.md");
});

check("a chat continues after the server was killed in an answer", async (page) => {
    const session = await startChat(page, ANSWER);
    await restart(page, session);
    await assertOnce(page, session, "It is in lib.rs.");
}, AWAY);

check("a timeline continues after the server was killed in a turn", async (page) => {
    const turns = [{ reply: `First. ${more("have to read on")}` }, slowly(`Then. ${more("have to read more")}`)];
    await server.ask("killed", [...turns, { reply: `It is in lib.rs. ${done}` }], "Where is it?");
    await signIn(page, server, "sessions/default/killed");
    await restart(page, "killed");
    await waitForText(page.getByRole("article"), "answered");
    for (const text of ["First.", "Then.", "It is in lib.rs."]) {
        assert.equal(await page.locator(".reply").getByText(text).count(), 1, text);
    }
    const expected = (await server.events("killed")).map(({ seq }) => seq);
    assert.deepEqual(expected, [...expected.keys()].map((at) => at + 1));
    let seen;
    const read = async () => {
        await page.locator(".entry").evaluateAll((rows) => rows.forEach((row) => (row.open = true)));
        const titles = await timeline(page).locator(".inside > details > summary").allTextContents();
        seen = titles.map((title) => Number(/^Event (\d+)/.exec(title)[1])).sort((a, b) => a - b);
        return seen.join() === expected.join();
    };
    await waitFor("each event once", read).catch(() => assert.deepEqual(seen, expected));
}, AWAY);

check("a message that is sent while the server is away arrives once", async (page) => {
    const session = await startChat(page, [{ reply: `First. ${done}` }]);
    await waitForText(answers(page), "First.");
    await server.kill();
    await send(page, script([{ reply: `Second. ${done}` }], "And now?"));
    await waitForText(page.locator(".trouble"), "The server does not respond. Reconnecting…");
    await server.up();
    await waitForText(answers(page), "Second.");
    await assertOnce(page, session, "First.", "Second.");
}, AWAY);

check("a message whose receipt is lost is sent once", async (page) => {
    const session = await startChat(page, [{ reply: `First. ${done}` }]);
    await waitForText(answers(page), "First.");
    let sent = 0;
    await page.route("**/messages", async (route) => {
        const response = await route.fetch();
        return sent++ ? route.fulfill({ response }) : route.abort();
    });
    await send(page, script([{ reply: `Second. ${done}` }], "And now?"));
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    await waitForText(answers(page), "Second.");
    assert.equal(sent, 2);
    await assertOnce(page, session, "First.", "Second.");
}, AWAY);

check("a long answer is shown whole", async (page) => {
    await startChat(page, [{ reply: `${"much ".repeat(6_000)} at the end. ${done}` }]);
    await waitForText(answers(page), "at the end.");
    await waitForGone(growing(page));
    await waitForText(answers(page), "at the end.");
});

check("a text that nests too deeply is shown as it is", async (page) => {
    await startChat(page, [{ reply: `${">".repeat(3_000)} deep ${done}` }]);
    await waitForText(page.locator(".talk .said"), "> deep");
});

check("a conversation begins under the name in the address", async (page) => {
    await signIn(page, server, "chat/by-name");
    await send(page, script([{ reply: `Here. ${done}` }], "Where is it?"));
    await waitForText(answers(page), "Here.");
}, /status of 404/);

check("a server that hangs is noticed", async (page) => {
    await signIn(page, server);
    server.process.kill("SIGSTOP");
    await waitForText(page.locator(".trouble"), "The server does not respond. Reconnecting…");
    server.process.kill("SIGCONT");
    await page.locator(".trouble:empty").waitFor({ state: "attached" });
});
