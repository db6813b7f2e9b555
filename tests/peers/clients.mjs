// `oracle serve` and OpenAI's JavaScript SDK, unmodified: chats, streams, errors, usage.
//
//     node clients.mjs http://127.0.0.1:PORT

import assert from "node:assert/strict";
import OpenAI from "openai";

const api = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "none" });
const model = "oracle";
const question = { role: "user", content: "where is parse_invoice?" };
const named = (session) => ({ headers: { "X-Oracle-Session": session } });

const first = await api.chat.completions.create({ model, messages: [question] }, named("js"));
const { message, finish_reason } = first.choices[0];
assert.match(message.content, /src\/parser\.rs:3-4/);
assert.equal(finish_reason, "stop");
assert.ok(first.usage.total_tokens > 0);
const more = { role: "user", content: "and who reads one?" };
const second = await api.chat.completions.create({ model, messages: [question, message, more] }, named("js"));
assert.deepEqual([second.oracle.session, second.oracle.query], ["js", 2]);

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

const models = [];
for await (const { id } of api.models.list()) models.push(id);
assert.equal(models[0], "oracle");
await assert.rejects(api.models.retrieve("gpt-4o"), OpenAI.NotFoundError);
await assert.rejects(api.chat.completions.create({ model, messages: [question], n: 2 }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, "n");
    return true;
});
console.log("ok  OpenAI's JavaScript SDK");
