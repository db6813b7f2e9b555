// `oracle serve` at ORACLE_URL and OpenAI's JavaScript SDK, unmodified: tools, formats and responses.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { VERSION } from "openai/version";
import { z } from "zod";
import { BONN, FORECAST, GREETING, TOWN, Weather, checkFormat, checkHeard, runCases, says, script } from "./scripted.mjs";

const baseURL = `${process.env.ORACLE_URL}/v1`;
const api = new OpenAI({ baseURL, apiKey: process.env.ORACLE_KEY, maxRetries: 0, timeout: 30_000 });
const model = "mock";
const Town = z.object({ name: z.string(), people: z.number().int() });
const City = z.object({ city: z.string() });
const user = (content) => ({ role: "user", content });

async function chat() {
    const first = await api.chat.completions.create({ model, messages: [user(GREETING)] });
    const { message } = first.choices[0];
    assert.equal(message.content, "Good morning.");
    const messages = [user(GREETING), message, user(script(says("Good evening.")))];
    const stream = api.chat.completions.stream({ model, messages });
    assert.equal(await stream.finalContent(), "Good evening.");
    await checkHeard("Good morning.");
}

const tools = (weather) => [
    zodFunction({ name: "weather", parameters: City, function: weather.weather, description: "Returns the temperature." }),
];

async function runTools() {
    const weather = new Weather();
    const runner = api.chat.completions.runTools({ model, messages: [user(FORECAST)], tools: tools(weather) });
    await weather.check(await runner.finalContent());
}

async function runToolsStreamed() {
    const weather = new Weather();
    const options = { model, messages: [user(FORECAST)], tools: tools(weather), stream: true };
    await weather.check(await api.chat.completions.runTools(options).finalContent());
}

async function parse() {
    const response_format = zodResponseFormat(Town, "town");
    const parsed = await api.chat.completions.parse({ model, messages: [user(TOWN)], response_format });
    assert.deepEqual(parsed.choices[0].message.parsed, BONN);
    await checkFormat("json_schema");
}

async function responses() {
    const first = await api.responses.create({ model, input: GREETING });
    assert.equal(first.output_text, "Good morning.");
    const input = script(says("Good evening."));
    const second = await api.responses.create({ model, input, previous_response_id: first.id });
    assert.equal(second.output_text, "Good evening.");
    await checkHeard("Good morning.");
}

async function responsesStream() {
    let text = "";
    const stream = api.responses.stream({ model, input: GREETING });
    stream.on("response.output_text.delta", ({ delta }) => (text += delta));
    const whole = await stream.finalResponse();
    assert.deepEqual([text, whole.output_text, whole.status], ["Good morning.", "Good morning.", "completed"]);
}

// Both ways of going on: with the items that came back, and by the response's id.
const responsesTools = (continues) =>
    async function () {
        const weather = new Weather();
        const tools = [zodResponsesFunction({ name: "weather", parameters: City })];
        let input = [user(FORECAST)];
        let previous_response_id;
        let answer;
        for (let round = 0; round < 6; round++) {
            answer = await api.responses.parse({ model, input, tools, previous_response_id });
            const called = answer.output.filter(({ type }) => type === "function_call");
            if (called.length === 0) break;
            const results = called.map(({ call_id, parsed_arguments }) => ({
                type: "function_call_output",
                call_id,
                output: weather.weather(parsed_arguments),
            }));
            if (continues === "items") {
                input = [...input, ...answer.output, ...results];
            } else {
                input = results;
                previous_response_id = answer.id;
            }
        }
        await weather.check(answer.output_text);
    };

async function responsesParse() {
    const parsed = await api.responses.parse({ model, input: TOWN, text: { format: zodTextFormat(Town, "town") } });
    assert.deepEqual(parsed.output_parsed, BONN);
    await checkFormat("json_schema");
}

const named = (name, test) => Object.defineProperty(test, "name", { value: name });
const client = `OpenAI's JavaScript SDK ${VERSION}`;
await runCases(client, { chat: api }, [chat, runTools, runToolsStreamed, parse]);
await runCases(client, { responses: api }, [
    named("create", responses),
    named("stream", responsesStream),
    named("tools by items", responsesTools("items")),
    named("tools by previous_response_id", responsesTools("previous")),
    named("parse", responsesParse),
]);
