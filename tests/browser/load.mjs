// Measures the page beside a server under load: frame times and memory of a tab, and CPU time of the server.
// node load.mjs URL KEY_FILE SERVER_PID [MINUTES]; start `oracle serve` and `oracle bench --url` before it.

import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { chromium } from "playwright-core";

const [url, keyFile, pid, minutes = "10"] = process.argv.slice(2);
const flags = ["--js-flags=--expose-gc", "--enable-precise-memory-info"];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: flags });

/** Seconds of CPU time that the server has used. */
function cpu() {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function share(what, seconds) {
    const before = cpu();
    await pause(1_000 * seconds);
    console.log(`server, ${what}: ${((100 * (cpu() - before)) / seconds).toFixed(1)} % of a core`);
}

async function open() {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    const begun = performance.now();
    await page.goto(`${url}/#key=${readFileSync(keyFile, "utf8").trim()}`);
    await page.locator("dl.tiles").waitFor();
    console.log(`figures after ${Math.round(performance.now() - begun)} ms`);
    return page;
}

async function show(page, view) {
    await page.evaluate((hash) => void (location.hash = hash), `#/${view}`);
    await pause(2_000);
}

/** Draws for some seconds, and scrolls if asked to. */
async function frames(page, what, seconds, scrolls = false) {
    const result = await page.evaluate(async ([seconds, scrolls]) => {
        const list = document.querySelector(".list");
        const times = [];
        let last = performance.now();
        const end = last + 1_000 * seconds;
        await new Promise((resolve) => {
            const draw = (now) => {
                times.push(now - last);
                last = now;
                if (scrolls) list.scrollTop += 30;
                if (now < end) requestAnimationFrame(draw);
                else resolve();
            };
            requestAnimationFrame(draw);
        });
        times.sort((a, b) => a - b);
        gc();
        const at = (part) => times[Math.min(times.length - 1, Math.floor(part * times.length))].toFixed(1);
        const heap = (performance.memory.usedJSHeapSize / 1e6).toFixed(2);
        return `frames p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms; heap ${heap} MB`;
    }, [seconds, scrolls]);
    console.log(`${what}: ${result}`);
}

for (let round = 0; round < 3; round += 1) {
    await share("no page", 30);
    const page = await open();
    await share("overview", 30);
    await show(page, "sessions");
    await share("sessions", 30);
    await page.close();
}
const page = await open();
for (let minute = 0; minute < Number(minutes); minute += 1) {
    await frames(page, "overview", 28);
    await show(page, "sessions");
    await frames(page, "sessions", 13);
    await frames(page, "sessions, scrolled", 13, true);
    await show(page, "");
}
await browser.close();
