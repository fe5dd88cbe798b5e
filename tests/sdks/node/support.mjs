// The programs under test: the provider that enforces its limits, and a daemon in front of it.
//
// Environment: STANDPIPE and PROVIDER are the programs.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const firstLine = async (child) => {
  for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error("it ended without a line");
};

const ended = (child) => new Promise((done) => child.once("exit", done));

/** Starts a provider of a shape and a daemon in front of it; both end with the test. */
export async function start(test, shape, flags = ["--requests", "1000/min"]) {
  const name = shape;
  const home = mkdtempSync(join(tmpdir(), "standpipe-sdks-"));
  const stdio = ["pipe", "pipe", "inherit"];
  const provider = spawn(process.env.PROVIDER, ["--stdin", "--shape", shape, ...flags], { stdio });
  const direct = await firstLine(provider);
  const config = join(home, "standpipe.toml");
  writeFileSync(config, `open_pools = true\n[provider.${name}]\nupstream = "${direct}"\n`);
  const words = ["--config", config, "--json", "--quiet", "up", "--listen", "127.0.0.1:0"];
  const env = { ...process.env, STANDPIPE_HOME: join(home, "state") };
  const tap = spawn(process.env.STANDPIPE, words, { stdio, env });
  const { url } = JSON.parse(await firstLine(tap));
  test.after(async () => {
    tap.kill();
    await ended(tap);
    provider.stdin.end();
    await ended(provider);
    rmSync(home, { recursive: true });
  });
  const log = async () => {
    const text = await (await fetch(`${direct}/log`)).text();
    return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  };
  return { direct, tap: `${url}/as/blog/${name}`, log };
}

/** What differs between two calls of the same kind. */
const NAMES = new Set([
  "id", "created", "created_at", "request_id", "_request_id", "headers", "timestamp", "responseId",
]);

/** An answer without what differs between two calls. */
export function plain(value) {
  return JSON.parse(JSON.stringify(value, (key, inner) => (NAMES.has(key) ? undefined : inner)));
}

/** The error that a call ends with, as what a program can see of it. */
export async function caught(call) {
  try {
    await call();
  } catch (error) {
    const { status, name, error: body } = error;
    return plain({ kind: error.constructor.name, status, name, body });
  }
  throw new Error("it did not fail");
}
