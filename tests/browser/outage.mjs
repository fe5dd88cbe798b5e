// While the store or the daemon is unavailable: what each pool does by its on_store_failure, and
// figures that are all of one instant.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { row, staged, visit, withHome } from "./scene.mjs";
import { agent, at, lease, pause, pool, rate, slots, ticket } from "./stage.mjs";
import { findings, redis, says, snapshots, text } from "./support.mjs";

const MINUTE = "requests per 1min";
const modes = ["closed", "open", "share"];
const config = (url) => `store = "${url}"\n${modes.map((mode) => `[pool."my/${mode}"]
requests = "60/min"
margin = 0
on_store_failure = "${mode}"
`).join("")}`;

test("without a call through the daemon each pool shows what it does", async () => {
  await withHome(async (own) => {
    const server = await redis(own);
    writeFileSync(own.config, config(server.url));
    await own.up();
    for (const mode of modes) {
      for (let n = 0; n < 6; n += 1) await own.reserve({ pool: `my/${mode}`, agent: "blog" });
    }
    const page = await visit(`${own.url}/#pool=my%2Fopen`);
    await says(page, ".limits .use", "6 of 60 used");
    await snapshots(page, 3);
    server.child.kill("SIGKILL");
    await server.child.ended;
    await says(page, "#outage", "1 of 3 pools admits no calls (my/closed); 1 admits its share "
      + "(my/share); 1 admits calls without limits (my/open).");
    await says(page, ".pill.warn", "not limited");
    await says(page, ".answers", "The store does not answer. Processes admit calls without limit. "
      + "Use since");
    const shown = () => page.$$eval(".limits .use, .agents .uses b, .burn .readout", (all) =>
      all.map((one) => one.innerText).join(" | "));
    const before = await shown();
    assert.match(before, /^6 \| 6 of 60 used · all free at [\d:]+ \| [\d:]+ \(last reading\)/);
    // The ledger would age: after three snapshots nothing has changed.
    await snapshots(page, 3);
    assert.equal(await shown(), before);
    for (const css of [".agents h3", ".limited h3", ".flying h3"]) await says(page, css, "(last known)");
    const head = (await text(page, "#link")).replace("figures of ", "").trim();
    for (const css of [".answers", ".burn .readout"]) {
      assert.ok((await text(page, css)).includes(head), `${css} is of ${head}`);
    }
    await page.waitForSelector(".burn rect.unknown");
    assert.doesNotMatch(await text(page, "main"), /\(now\)/);
    for (const [mode, word] of [["closed", "store unavailable"], ["share", "on its share"]]) {
      await page.evaluate((name) => { location.hash = `#pool=my%2F${name}`; }, mode);
      await says(page, ".pill", word);
    }
    await says(page, ".answers", "Each running process admits its share of the limits; one that "
      + "starts now admits no call (503, exit code 69).");
    assert.deepEqual(await findings(page), []);
    // A call through the daemon: it has a ledger of its own, and all figures are of that.
    await own.reserve({ pool: "my/open", agent: "probe" });
    await page.evaluate(() => { location.hash = "#pool=my%2Fopen"; });
    await says(page, ".answers", "The figures are of this daemon’s calls.");
    for (const css of [".agents h3", ".limited h3", ".flying h3"]) {
      await says(page, css, "(this daemon only)");
    }
    assert.ok(await row(page, ".agents", "probe"));
    const users = await page.$$eval(".agents .uses b", (all) => all.reduce((sum, one) =>
      sum + Number(one.innerText), 0));
    await says(page, ".limits .use", `${users} of 60 used`);
    await says(page, ".burn .readout", "requests/min 10 % (6 of 60)");
  });
});

/** A pool that was read so long ago. */
const old = (ms, name, more) => pool(name, { at: at(-ms), limits: [rate(MINUTE, { amount: 60,
  used: 20 })], agents: [agent("research", { [MINUTE]: 20 }, { in_flight: 1 })],
leases: [lease("a", "research")], ...more });

test("a stopped or paused pool admits no call, whatever its on_store_failure", async () => {
  const more = { age_ms: 20_000, on_store_failure: { "my/open": "open" } };
  const paused = old(20_000, "my/open", { pause: pause(600_000) });
  const stopped = old(20_000, "my/stopped", { terminal: { until: null, for_ms: null, look_ms: 1 } });
  await staged([paused, stopped], async (page, stage) => {
    await says(page, ".pill.bad", "paused");
    await says(page, ".answers", "No call is admitted until the pause ends at");
    await says(page, ".answers", "Then: processes admit calls without limit.");
    await says(page, "#rail", "my/stopped store unavailable");
    // The same after its end: the pause does not need the store to end.
    stage.set([{ ...paused, pause: pause(-1_000) }, stopped], more);
    await says(page, ".pill.warn", "not limited");
  }, { more });
});

test("calls that waited are unknown where processes decide alone", async () => {
  const tickets = [ticket("docs", 1)];
  const more = { age_ms: 20_000, on_store_failure: { "my/open": "open" } };
  await staged([old(20_000, "my/open", { tickets }), old(20_000, "my/closed", { tickets })],
    async (page) => {
      await says(page, ".answers", "Processes admit calls without limit.");
      assert.equal((await page.$$(".waiting tbody tr")).length, 0);
      await page.evaluate(() => { location.hash = "#pool=my%2Fclosed"; });
      await says(page, ".waiting tbody", "when the store answers");
    }, { more });
});

test("on its share: all figures are this daemon's, and the share is named", async () => {
  const whole = pool("openai/gpt", { limits: [rate(MINUTE, { amount: 60, used: 20 }), slots(3, 1)],
    agents: [agent("research", { [MINUTE]: 20 }, { in_flight: 1 })], leases: [lease("a", "research")] });
  const part = pool("openai/gpt", { limits: [rate(MINUTE, { amount: 20, used: 1 }), slots(1, 0)],
    agents: [agent("probe", { [MINUTE]: 1 })], cut_off: { for_ms: 4_000, mode: "share", among: 3 } });
  await staged([whole], async (page, stage) => {
    await says(page, ".agents", "research");
    stage.set([part], { age_ms: 1_000, store_error: "refused",
      on_store_failure: { "openai/gpt": "share" } });
    await says(page, ".pill", "on its share");
    await says(page, ".answers", "Each of 3 processes admits its share of the limits");
    await says(page, ".agents h3", "Who uses the quota (this daemon only)");
    const names = await page.$$eval(".agents tbody .name", (all) => all.map((one) => one.innerText));
    assert.deepEqual(names, ["probe"]);
    await says(page, ".counts", "none in flight through this daemon");
    await says(page, ".limits .fine", "this daemon’s share: 20 of 60 (1 of 3 processes)");
    await says(page, "#outage", "1 of 1 pool admits its share (openai/gpt).");
    // Its own calls are no sample of the pool.
    await says(page, ".burn .readout", "requests/min 33 % (20 of 60)");
  });
});

test("a plot has no line where nothing is known", async () => {
  const now = Date.now();
  const samples = (from, to, units) => Array.from({ length: (to - from) / 2_000 }, (_, n) =>
    [now + from + n * 2_000, units, 0, 60]);
  const history = [{ pool: "my/a", limits: [{ limit: MINUTE, unit: "requests",
    samples: [...samples(-100_000, -60_000, 30), ...samples(-30_000, 0, 12)],
    agents: [{ at: now - 100_000, used: { blog: 20, docs: 10 } },
      { at: now - 30_000, used: { docs: 12 } }] }] }];
  const calm = pool("my/a", { limits: [rate(MINUTE, { amount: 60, used: 12 })],
    agents: [agent("docs", { [MINUTE]: 12 })] });
  await staged([calm], async (page, stage) => {
    const line = () => page.$eval(".burn path.line.ink0:not(.key *)", (one) =>
      one.getAttribute("d").match(/M/g).length);
    await page.waitForFunction(() => document.querySelectorAll(".burn rect.unknown").length === 1);
    assert.equal(await line(), 2, "two runs");
    // Who used it then is the daemon's: the page was not open.
    await page.focus(".burn .handle");
    await page.keyboard.press("Home");
    await says(page, ".burn .readout", "requests/min 50 % (30 of 60): blog 33 %, docs 17 %");
    await page.keyboard.press("Escape");
    page.expectsErrors = true;
    await stage.down();
    await says(page, ".burn .readout", "(last reading)");
    await page.waitForFunction(() => document.querySelectorAll(".burn rect.unknown").length === 2);
    assert.doesNotMatch(await text(page, ".burn"), /\(now\)/);
    const label = await page.$eval(".burn svg.plot", (svg) => svg.getAttribute("aria-label"));
    assert.match(label, /requests per minute: at \d\d:\d\d:\d\d 20 %, highest 50 %/);
  }, { history });
});
