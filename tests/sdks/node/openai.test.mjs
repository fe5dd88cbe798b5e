// OpenAI's SDK for Node through the proxy: the same objects as without it.

import assert from "node:assert/strict";
import test from "node:test";
import OpenAI from "openai";
import { caught, plain, start } from "./support.mjs";

const ask = { model: "gpt-4o", messages: [{ role: "user", content: "Say that it is done." }] };
const weather = {
  name: "weather",
  description: "the weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

async function alike({ direct, tap }, look) {
  const client = (base) => new OpenAI({ baseURL: `${base}/v1`, apiKey: "k", maxRetries: 0 });
  const seen = await look(client(tap));
  assert.deepEqual(seen, await look(client(direct)));
  return seen;
}

/** The parts of a stream, without usage: the proxy makes the body longer to ask for it. */
async function parts(stream) {
  const found = [];
  for await (const part of await stream) found.push(plain({ ...part, usage: undefined }));
  return found;
}

test("openai: chat, whole, streamed and with tools, is the same", async (t) => {
  const seen = await alike(await start(t, "openai"), async (client) => {
    const chat = client.chat.completions;
    const tools = { tools: [{ type: "function", function: weather }], tool_choice: "required" };
    const counted = { stream: true, stream_options: { include_usage: true } };
    const last = (await parts(chat.create({ ...ask, ...counted }))).at(-1);
    return [
      plain(await chat.create(ask)).choices,
      await parts(chat.create({ ...ask, stream: true })),
      await parts(chat.create({ ...ask, ...tools, stream: true })),
      last,
    ];
  });
  assert.equal(seen[1].at(-1).choices[0].finish_reason, "stop");
  assert.deepEqual(seen[3].choices, [], "usage that was asked for is not hidden");
});

test("openai: responses, whole, streamed and with tools, are the same", async (t) => {
  const seen = await alike(await start(t, "openai"), async (client) => {
    const input = { model: "gpt-4o", input: "Say that it is done." };
    const tools = { tools: [{ type: "function", ...weather }], tool_choice: "required" };
    return [
      plain(await client.responses.create(input)),
      await parts(client.responses.create({ ...input, stream: true })),
      await parts(client.responses.create({ ...input, ...tools, stream: true })),
    ];
  });
  assert.equal(seen[0].output_text, "Done and done.");
  assert.equal(seen[1].at(-1).type, "response.completed");
});

test("openai: embeddings and models are the same", async (t) => {
  const seen = await alike(await start(t, "openai"), async (client) => [
    plain(await client.embeddings.create({ model: "text-embedding-3-small", input: ["a", "b"] })),
    (await client.models.list()).data.map((model) => model.id),
  ]);
  const vectors = seen[0].data.map((each) => [...each.embedding]);
  assert.deepEqual(vectors, Array(2).fill([1, 0.5, 0.25]));
});

test("openai: a large body passes, and errors are the SDK's own", async (t) => {
  const servers = await start(t, "openai");
  await alike(servers, async (client) => {
    const messages = [{ role: "user", content: "a long prompt, ".repeat(50_000) }];
    return (await client.chat.completions.create({ ...ask, messages })).choices;
  });
  for (const status of [400, 401, 403, 404, 500, 503]) {
    const headers = { "x-fail": `${status}`, "x-standpipe-wait": "0" };
    const seen = await alike(servers, (client) =>
      caught(() => client.chat.completions.create(ask, { headers })));
    assert.equal(seen.status, status);
  }
});
