// `oracle serve` at ORACLE_URL and OpenAI's JavaScript SDK, unmodified: chats, streams, usage, errors, keys.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { VERSION } from "openai/version";

const baseURL = `${process.env.ORACLE_URL}/v1`;
const api = new OpenAI({ baseURL, apiKey: process.env.ORACLE_KEY });
const model = "oracle";
const question = { role: "user", content: "where is parse_invoice?" };
const named = (session) => ({ headers: { "X-Oracle-Session": session } });
const ask = (messages, options) => api.chat.completions.create({ model, messages }, options);

const first = await ask([question], named("js"));
const { message, finish_reason } = first.choices[0];
assert.match(message.content, /src\/parser\.rs:3-4/);
assert.equal(finish_reason, "stop");
assert.ok(first.usage.total_tokens > 0);
const more = { role: "user", content: "and who reads one?" };
const second = await ask([question, message, more], named("js"));
assert.deepEqual([second.oracle.session, second.oracle.query], ["js", 2]);
const edited = await ask([question, message, { role: "user", content: "what is in src?" }], named("js"));
assert.deepEqual([edited.oracle.session, edited.oracle.query], ["js", 3], "a named session goes on at its tail");
console.log("ok  OpenAI's JavaScript SDK: chats");

let text = "";
let used;
const options = { model, messages: [question], stream: true, stream_options: { include_usage: true } };
for await (const chunk of await api.chat.completions.create(options)) {
    text += chunk.choices[0]?.delta.content ?? "";
    used = chunk.usage ?? used;
}
assert.match(text, /src\/parser\.rs:3-4/);
assert.ok(used.total_tokens > 0);
const whole = await api.chat.completions.stream({ model, messages: [question] }).finalContent();
assert.match(whole, /src\/parser\.rs:3-4/);
const names = Array.from({ length: 16 }, (_, number) => `js-${number}`);
const all = await Promise.all(names.map((name) => ask([question], named(name))));
assert.deepEqual(all.map((answer) => answer.oracle.session), names);
console.log("ok  OpenAI's JavaScript SDK: streams, and many at a time");

const models = [];
for await (const { id } of api.models.list()) models.push(id);
assert.equal(models[0], "oracle");
await assert.rejects(api.models.retrieve("gpt-4o"), OpenAI.NotFoundError);
await assert.rejects(api.chat.completions.create({ model, messages: [question], n: 2 }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, "n");
    return true;
});
await assert.rejects(new OpenAI({ baseURL, apiKey: "none" }).models.list(), (error) => {
    assert.ok(error instanceof OpenAI.AuthenticationError);
    assert.equal(error.code, "invalid_api_key");
    return true;
});
console.log(`ok  OpenAI's JavaScript SDK: errors; all of it with ${VERSION} on Node.js ${process.version}`);
