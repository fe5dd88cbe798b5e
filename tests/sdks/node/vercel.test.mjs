// The Vercel AI SDK through the proxy: the same objects as without it.

import assert from "node:assert/strict";
import test from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, embed, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { plain, start } from "./support.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const prompt = "Say that it is done.";
const weather = tool({
  description: "the weather",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `rain in ${city}`,
});

const makers = {
  anthropic: (base) => createAnthropic({ baseURL: `${base}/v1`, apiKey: "k" })("claude-sonnet-test"),
  openai: (base) => createOpenAI({ baseURL: `${base}/v1`, apiKey: "k" })("gpt-4o"),
};

for (const [name, model] of Object.entries(makers)) {
  test(`ai with ${name}: text, streams and tools are the same`, async (t) => {
    const { direct, tap } = await start(t, name);
    const look = async (base) => {
      const options = { model: model(base), prompt, maxRetries: 0 };
      const whole = await generateText(options);
      const stream = streamText(options);
      const text = [];
      for await (const piece of stream.textStream) text.push(piece);
      const called = await generateText({
        ...options,
        tools: { weather },
        stopWhen: stepCountIs(2),
        prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber ? "auto" : "required" }),
      });
      const results = called.steps[0].toolResults.map((result) => result.output);
      return plain([whole.text, whole.usage, text, await stream.finishReason, results, called.text]);
    };
    const seen = await look(tap);
    assert.deepEqual(seen, await look(direct));
    assert.deepEqual(seen[4], ["rain in seven"]);
  });

  test(`ai with ${name}: an error of the provider is the SDK's own, and is not multiplied`, async (t) => {
    const { direct, tap, log } = await start(t, name);
    const look = async (base, status) => {
      const headers = { "x-fail": `${status}`, "x-standpipe-wait": "0" };
      const call = generateText({ model: model(base), prompt, maxRetries: 0, headers });
      const error = await call.catch((error) => error);
      assert.ok(APICallError.isInstance(error), `${error}`);
      return plain([error.message, error.statusCode, error.isRetryable, error.data]);
    };
    for (const status of [400, 401, 404]) {
      assert.deepEqual(await look(tap, status), await look(direct, status));
    }
    assert.equal((await log()).length, 6);
  });
}

test("ai: embeddings are the same", async (t) => {
  const { direct, tap } = await start(t, "openai");
  const look = async (base) => {
    const openai = createOpenAI({ baseURL: `${base}/v1`, apiKey: "k" });
    const model = openai.embedding("text-embedding-3-small");
    return (await embed({ model, value: "a", maxRetries: 0 })).embedding;
  };
  assert.deepEqual(await look(tap), await look(direct));
});
