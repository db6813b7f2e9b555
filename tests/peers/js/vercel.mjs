// `oracle serve` at ORACLE_URL and Vercel's AI SDK, unmodified: by the responses, the chat API, and as any server with it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { BONN, FORECAST, GREETING, TOWN, Weather, checkFormat, checkHeard, runCases, says, script } from "./scripted.mjs";

const baseURL = `${process.env.ORACLE_URL}/v1`;
const apiKey = process.env.ORACLE_KEY;
const openai = createOpenAI({ baseURL, apiKey });
const compatible = createOpenAICompatible({ name: "oracle", baseURL, apiKey, supportsStructuredOutputs: true });
const Town = z.object({ name: z.string(), people: z.number().int() });
const common = () => ({ maxRetries: 0, abortSignal: AbortSignal.timeout(30_000) });

async function text(model) {
    const first = await generateText({ ...common(), model, system: "Be polite.", prompt: GREETING });
    assert.equal(first.text, "Good morning.");
    assert.ok(first.usage.totalTokens > 0);
    await checkHeard("Be polite.");
    const messages = [{ role: "user", content: GREETING }, ...first.response.messages];
    messages.push({ role: "user", content: script(says("Good evening.")) });
    assert.equal((await generateText({ ...common(), model, messages })).text, "Good evening.");
    await checkHeard("Good morning.");
}

async function stream(model) {
    const pieces = [];
    for await (const piece of streamText({ ...common(), model, prompt: GREETING }).textStream) pieces.push(piece);
    assert.ok(pieces.length > 1);
    assert.equal(pieces.join(""), "Good morning.");
}

const tools = (weather) => ({
    weather: tool({ inputSchema: z.object({ city: z.string() }), execute: async (input) => weather.weather(input) }),
});

async function steps(model) {
    const weather = new Weather();
    const options = { ...common(), model, prompt: FORECAST, tools: tools(weather), stopWhen: stepCountIs(5) };
    const answer = await generateText(options);
    assert.equal(answer.steps.length, 3);
    await weather.check(answer.text);
}

async function streamedSteps(model) {
    const weather = new Weather();
    const options = { ...common(), model, prompt: FORECAST, tools: tools(weather), stopWhen: stepCountIs(5) };
    const answer = streamText(options);
    await answer.consumeStream();
    assert.equal((await answer.steps).length, 3);
    await weather.check(await answer.text);
}

async function object(model) {
    assert.deepEqual((await generateObject({ ...common(), model, schema: Town, prompt: TOWN })).object, BONN);
    await checkFormat("json_schema");
}

async function output(model) {
    const options = { ...common(), model, prompt: TOWN, output: Output.object({ schema: Town }) };
    assert.deepEqual((await generateText(options)).output, BONN);
}

const { version } = JSON.parse(readFileSync("node_modules/ai/package.json"));
const models = { responses: openai("mock"), chat: openai.chat("mock"), "openai-compatible": compatible("mock") };
await runCases(`Vercel's AI SDK ${version}`, models, [text, stream, steps, streamedSteps, object, output]);
