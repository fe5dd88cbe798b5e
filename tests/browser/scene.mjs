// What the tests of the dashboard share: one browser, one daemon with a few pools, and pages in
// which nothing may go wrong.

import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";
import { Stage } from "./stage.mjs";
import { Home, launch, open } from "./support.mjs";

const CONFIG = `
[pool."work/rate"]
requests = "4/h"
margin = 0
tokens = "10000/h"
parallel = 10
spread = false
price = { tokens = 3.0 }

[pool."work/shadow"]
requests = "100/min"
enforce = false

[agent.boss]
priority = "critical"
floor = "25%"

[agent.poller]
priority = "background"
cap = { requests = "3/h" }
`;

export const scene = { browser: null, home: null };
const pages = [];

export async function visit(at = scene.home, options = {}) {
  const page = await open(scene.browser, at.url ?? at, options);
  pages.push(page);
  return page;
}

/** The row of an agent in a list. */
export async function row(of, list, agent) {
  const found = await of.evaluateHandle((css, name) => [...document.querySelectorAll(
    `${css} tbody tr`)].find((one) => one.querySelector(".name")?.textContent === name),
  list, agent);
  return found.asElement();
}

before(async () => {
  scene.browser = await launch();
  scene.home = new Home(CONFIG);
  await scene.home.up();
});

after(async () => {
  await scene.browser?.close();
  await scene.home?.end();
});

afterEach(leave);

/** Closes all pages; nothing may have gone wrong in any. */
export async function leave() {
  const wrong = pages.flatMap((one) => one.wrong);
  for (const one of pages.splice(0)) await one.close();
  assert.deepEqual(wrong, []);
}

/** With a daemon that is this test's alone. */
export async function withHome(run, config = "") {
  const own = new Home(config);
  try {
    await run(own);
    await leave();
  } finally {
    await own.end();
  }
}

/** A daemon that shows these pools, and a page on the first of them. */
export async function staged(pools, run, { more, events = [], history, hash, ...options } = {}) {
  const stage = await new Stage().up();
  Object.assign(stage, { events, history });
  stage.set(pools, more);
  const address = hash ?? (pools.length > 0 ? `#pool=${encodeURIComponent(pools[0].pool)}` : "");
  const page = await visit(`${stage.url}/${address}`, options);
  try {
    await run(page, stage);
  } finally {
    page.expectsErrors = true;
    await stage.down().catch(() => {});
  }
}
