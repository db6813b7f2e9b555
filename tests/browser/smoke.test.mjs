// The page works: a question in the chat is answered, and its session has a timeline.

import assert from "node:assert/strict";
import { send, signIn, tests, timeline, waitForText } from "./page.mjs";
import { done, script, Server } from "./served.mjs";

const server = new Server();
const check = tests(server);

check("a question is answered, listed and explained", async (page) => {
    await signIn(page, server);
    assert.equal(page.url(), `${server.url}/`);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await waitForText(page.locator(".tiles dd b"), /\d/);

    await page.getByRole("link", { name: "Chat" }).click();
    await send(page, script([{ reply: `It is in **lib.rs**. ${done}` }], "Where is it?"));
    await waitForText(page.locator(".markdown strong"), "lib.rs");

    await page.getByRole("link", { name: "Sessions" }).click();
    await page.getByRole("row").filter({ hasText: "Where is it?" }).getByRole("link").click();
    await waitForText(timeline(page), "context sufficient, 80 % sure");
});
