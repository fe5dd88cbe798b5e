// Bottleneck clustering, as its documentation says.
//
//     bottleneck.mjs DIRECTORY-WITH-node_modules PORT
//
// Says `ready`, then for each line with a number of milliseconds on its input runs jobs one after
// the other for so long and says `pairs elapsed-ns p50-ns p99-ns failed`.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [, , home, port] = process.argv;
const require = createRequire(`${home}/`);
const Bottleneck = require("bottleneck");
const Redis = require("ioredis");

const limiter = new Bottleneck({
  id: "bench",
  datastore: "ioredis",
  clearDatastore: false,
  clientOptions: { host: "127.0.0.1", port: Number(port) },
  Redis,
  maxConcurrent: 1000,
  reservoir: 1_000_000_000,
  reservoirRefreshAmount: 1_000_000_000,
  reservoirRefreshInterval: 60_000,
});
limiter.on("error", (error) => {
  console.error(error);
  process.exit(1);
});

const job = () => limiter.schedule({ expiration: 60_000 }, async () => {});

await limiter.ready();
for (let i = 0; i < 3; i += 1) await job();
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const began = process.hrtime.bigint();
  const until = began + BigInt(line) * 1_000_000n;
  const took = [];
  let before = began;
  while (before < until) {
    await job();
    const after = process.hrtime.bigint();
    took.push(Number(after - before));
    before = after;
  }
  took.sort((a, b) => a - b);
  const late = took[Math.floor((took.length * 99) / 100)];
  console.log(took.length, String(before - began), took[took.length >> 1], late, 0);
}
process.exit(0);
