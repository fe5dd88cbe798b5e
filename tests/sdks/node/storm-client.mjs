// One of the fifty: calls Anthropic's SDK in a loop until its time is over, then prints what it saw.
//
// Arguments: base URL, name, seconds, pause between two calls in milliseconds, retries of the SDK.

import { setTimeout as sleep } from "node:timers/promises";
import Anthropic, { RateLimitError } from "@anthropic-ai/sdk";

const [baseURL, name, seconds, pause, maxRetries] = process.argv.slice(2);
const defaultHeaders = { "x-agent": name };
const client = new Anthropic({ baseURL, apiKey: "k", maxRetries: +maxRetries, defaultHeaders });
const until = Date.now() + seconds * 1000;
const seen = { ok: 0, refused: 0, slowest: 0, waited: 0 };
for (let call = Number(name.replace(/\D/g, "")); Date.now() < until; call++) {
  // Prompts of 100 to 1,900 tokens.
  const messages = [{ role: "user", content: "tap ".repeat(100 + ((call * 7) % 19) * 100) }];
  const began = Date.now();
  try {
    await client.messages.create({ model: "claude-sonnet-test", max_tokens: 100, messages });
    seen.ok++;
  } catch (error) {
    if (!(error instanceof RateLimitError)) throw error;
    seen.refused++;
  }
  seen.slowest = Math.max(seen.slowest, Date.now() - began);
  seen.waited += Date.now() - began;
  await sleep(+pause);
}
console.log(JSON.stringify(seen));
