// Conversations that a mock model leads by script, like ../scripted.py, and what has to come of them.

import assert from "node:assert/strict";

const SIGNAL = '<signal type="context_sufficient"><sources_found>1</sources_found></signal>';
const TEMPERATURES = { Oslo: -5, Rome: 12, Bonn: 19 };
const call = (city) => ({ name: "weather", arguments: { city } });

export const script = (...turns) => `mock: ${JSON.stringify({ turns })}`;
export const says = (text) => ({ reply: `${text} ${SIGNAL}` });
export const GREETING = script(says("Good morning."));
export const FORECAST = script(
    { tool_calls: [call("Oslo"), call("Rome")] },
    { tool_calls: [call("Bonn")] },
    says("Bonn is warmest."),
);
export const BONN = { name: "Bonn", people: 330000 };
export const TOWN = script({ reply: JSON.stringify(BONN) });

// The tool of FORECAST, which remembers the cities that it was asked for.
export class Weather {
    cities = [];

    weather = ({ city }) => {
        this.cities.push(city);
        return `${city}: ${TEMPERATURES[city]} C`;
    };

    async check(answer) {
        assert.deepEqual([...this.cities].sort(), Object.keys(TEMPERATURES).sort());
        const results = (await lastRequest()).messages.filter(({ role }) => role === "tool");
        const told = JSON.stringify(results);
        for (const [city, degrees] of Object.entries(TEMPERATURES)) assert.ok(told.includes(`${city}: ${degrees} C`), told);
        assert.equal(answer, "Bonn is warmest.");
    }
}

export async function lastRequest() {
    const lines = await (await fetch(`${process.env.MOCK_URL}/requests`)).text();
    return JSON.parse(lines.trimEnd().split("\n").at(-1)).body;
}

export async function checkHeard(...texts) {
    const told = JSON.stringify((await lastRequest()).messages);
    for (const text of texts) assert.ok(told.includes(text), `not heard: ${text}`);
}

export async function checkFormat(type) {
    const { response_format } = await lastRequest();
    assert.equal(response_format?.type, type);
}

// Runs each case with each model and prints a line for each. The exit code says whether one failed.
export async function runCases(client, models, cases) {
    for (const [kind, model] of Object.entries(models)) {
        for (const test of cases) {
            try {
                await test(model);
                console.log(`ok  ${client}, ${kind}: ${test.name}`);
            } catch (error) {
                console.error(error);
                console.log(`FAILED  ${client}, ${kind}: ${test.name}`);
                process.exitCode = 1;
            }
        }
    }
}
