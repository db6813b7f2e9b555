// Tests with a tab of a browser, which fail by its errors and by its requests to other hosts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

/** What a browser says of a server that is away, and of a key that is refused. */
export const AWAY = /Failed to load resource: (net::ERR_|the server responded with a status of 50[23])/;
export const REFUSED = /status of 401/;

/** Makes tests with a server, after `prepare`. `allow` of a test matches the errors that it brings about. */
export function tests(server, prepare) {
    let browser;
    before(async () => {
        browser = await chromium.launch({ executablePath: process.env.CHROMIUM });
        await server.start();
        await prepare?.();
    });
    after(async () => {
        await server.stop();
        await browser?.close();
    });
    return (name, body, allow) =>
        test(name, { timeout: 60_000 }, async (t) => {
            const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
            context.setDefaultTimeout(20_000);
            const problems = [];
            const report = (kind, text) => allow?.test(text) || problems.push(`${kind}: ${text}`);
            context.on("weberror", (event) => report("error", event.error().stack));
            context.on("dialog", (dialog) => (report("dialog", dialog.message()), dialog.dismiss()));
            context.on("console", (message) => {
                if (/error|warning/.test(message.type())) report("console", message.text());
            });
            context.on("request", (request) => {
                const url = request.url();
                if (!url.startsWith(`${server.url}/`)) report("request to another host", url);
                if (url.includes(server.key)) report("the key in a request's address", url);
            });
            try {
                await body(await context.newPage(), t);
                assert.deepEqual(problems, []);
            } finally {
                server.resume();
                await context.close();
            }
        });
}

/** Signs in by the link that the server prints, and opens a view. */
export async function signIn(page, server, view = "") {
    await page.goto(`${server.url}/#key=${server.key}`);
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    if (view) await go(page, view);
}

/** Opens a view without loading the page anew. */
export const go = (page, view) => page.evaluate((hash) => void (location.hash = hash), `#/${view}`);

/** Waits until one of a locator's elements has a text. */
export const waitForText = (locator, text) => locator.filter({ hasText: text }).first().waitFor();
/** Waits until there is none. */
export const waitForGone = (locator) => locator.waitFor({ state: "detached" });
/** Presses the button of this name. */
export const press = (page, name) => page.getByRole("button", { name, exact: true }).click();

/** Sends a message in the chat, and returns its session. */
export async function send(page, text) {
    await page.getByLabel("Message").fill(text);
    await press(page, "Send");
    await page.waitForURL(/#\/chat\/.+/);
    return page.url().split("/").at(-1);
}

/** Parts of a session's view. */
export const timeline = (page) => page.getByRole("region", { name: "Timeline" });
export const turn = (page, number) => page.getByRole("region", { name: `Turn ${number}`, exact: true });
export const waiting = (page) => page.getByRole("region", { name: "Waiting for a person" });
