// Anthropic's SDK for Node through the proxy: the same objects as without it.

import assert from "node:assert/strict";
import test from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { caught, plain, start } from "./support.mjs";

const ask = {
  model: "claude-sonnet-test",
  max_tokens: 10,
  messages: [{ role: "user", content: "Say that it is done." }],
};
const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = {
  tools: [{ name: "weather", description: "the weather", input_schema: city }],
  tool_choice: { type: "any" },
};

const both = ({ direct, tap }) =>
  [direct, tap].map((baseURL) => new Anthropic({ baseURL, apiKey: "k", maxRetries: 0 }));

async function alike(servers, look) {
  const [without, through] = both(servers);
  const seen = await look(through);
  assert.deepEqual(seen, await look(without));
  return seen;
}

test("anthropic: whole answers, streams and tools are the same", async (t) => {
  const servers = await start(t, "anthropic");
  const seen = await alike(servers, async (client) => {
    const headers = { "x-used-output": "12" };
    const whole = await client.messages.create(ask, { headers });
    const stream = client.messages.stream(ask, { headers });
    const kinds = [];
    for await (const event of stream) kinds.push(event.type);
    const called = client.messages.stream({ ...ask, ...tools });
    return plain([whole, kinds, await stream.finalMessage(), await called.finalMessage()]);
  });
  assert.equal(seen[2].usage.output_tokens, 12);
  assert.deepEqual(seen[3].content[0].input, { city: "seven" });
});

test("anthropic: a large body passes", async (t) => {
  const [, through] = both(await start(t, "anthropic"));
  const messages = [{ role: "user", content: "a long prompt, ".repeat(50_000) }];
  const answer = await through.messages.create({ ...ask, messages });
  assert.ok(answer.usage.input_tokens > 100_000);
});

test("anthropic: errors are the SDK's own", async (t) => {
  const servers = await start(t, "anthropic");
  for (const status of [400, 401, 403, 404, 413, 500, 529]) {
    const headers = { "x-fail": `${status}`, "x-standpipe-wait": "0" };
    const seen = await alike(servers, (client) =>
      caught(() => client.messages.create(ask, { headers })));
    assert.equal(seen.status, status);
  }
});

test("anthropic: a spent budget is told once, though the SDK's retries are on", async (t) => {
  const servers = await start(t, "anthropic", ["--spent"]);
  const client = new Anthropic({ baseURL: servers.tap, apiKey: "k" });
  for (let call = 0; call < 2; call++) {
    assert.equal((await caught(() => client.messages.create(ask))).status, 429);
  }
  assert.equal((await servers.log()).length, 1);
});

test("anthropic: a stream that fails midway raises the SDK's own error", async (t) => {
  const servers = await start(t, "anthropic");
  const headers = { "x-error-after": "3" };
  const seen = await alike(servers, (client) =>
    caught(() => client.messages.stream(ask, { headers }).finalMessage()));
  assert.equal(seen.body.error.type, "overloaded_error");
});
