// Calls that were not admitted: each counts once, with its true reason, and what a new call would
// meet. And who did what, by which name and priority.

import assert from "node:assert/strict";
import { test } from "node:test";
import { scene, staged, visit, withHome } from "./scene.mjs";
import { agent, at, pause, pool, rate, ticket } from "./stage.mjs";
import { says, text, until } from "./support.mjs";

const MINUTE = "requests per 1min";

test("a waiting call that a stop refuses counts once, for the stop", async () => {
  await withHome(async (own) => {
    await own.up();
    own.hold("my/slots", "--limit", "parallel=1", "--as", "holder");
    await until("it holds", async () => (await own.status("my/slots"))?.in_flight === 1);
    const waiter = own.start("-q", "hold", "my/slots", "--as", "waiter", "--timeout", "5min", "--",
      "true");
    await until("it waits", async () => (await own.status("my/slots")).waiting === 1);
    await own.run("throttle", "my/slots", "--kind", "terminal", "--as", "holder");
    await waiter.ended;
    // One at once: both calls are of one line, with two calls.
    const late = own.start("-q", "hold", "my/slots", "--as", "late", "--timeout", "1s", "--", "true");
    await late.ended;
    const page = await visit(own);
    await says(page, ".answers", "2 calls of late and waiter were not admitted.");
    const rows = await page.$$eval(".turned tbody tr", (all) => all.map((one) =>
      [...one.cells].slice(0, 3).map((cell) => cell.innerText.trim())));
    assert.deepEqual(rows.sort(), [["late", "1", "the provider stopped the pool"],
      ["waiter", "1", "the provider stopped the pool"]]);
    assert.equal(await text(page, ".turned .count"), "2");
    await says(page, ".agents tbody", "1 not admitted");
    const lines = await page.$$eval(".events span", (all) => all.map((one) => one.innerText));
    assert.ok(lines.some((one) => /^waiter waited .* then refused: the provider stopped the pool$/
      .test(one)), lines.join("\n"));
    assert.ok(lines.every((one) => !one.includes("timed out")), lines.join("\n"));
    assert.ok(lines.includes("stopped by the provider"), "the cause is in sight");
  });
});

test("what is known of a new call, and nothing that is not", async () => {
  const page = await visit(scene.home);
  const limits = [rate(MINUTE, { amount: 60, used: 10 })];
  const waits = ticket("crawler", 1, { reason: "spread", limit: MINUTE, expected: at(42_000),
    expected_ms: 42_000, waiting_for: "a call in flight to end" });
  const exact = ticket("crawler", 1, { until: at(42_000), until_ms: 42_000 });
  const cases = [["limit", pool("a", { limits })], ["spread", pool("a", { limits })],
    ["limit", pool("a", { limits: [rate(MINUTE, { amount: 10, used: 10 })] })],
    ["limit", pool("a", { limits, tickets: [ticket("other", 1)] })],
    ["spread", pool("a", { limits, tickets: [waits] })],
    ["limit", pool("a", { limits, tickets: [exact] })],
    ["limit", pool("a", { limits, zone: "amber" })], ["cap", pool("a", { limits })],
    ["pause", pool("a", { limits, pause: pause(60_000) })], ["never", pool("a", { limits })],
    ["terminal", pool("a", { terminal: { until: null } })]];
  const texts = await page.evaluate(async (all) => {
    const { askAgain } = await import("/ui/turned.js");
    return [...all.map(([reason, of]) => askAgain({ agent: "crawler", reason }, of)[1]),
      askAgain({ agent: "crawler", reason: "limit" }, all[0][1], true)[1],
      askAgain({ agent: "crawler", reason: "limit" }, { ...all[0][1], on_store_failure: "open" },
        true)[1]].map((one) => one.replace(/\d\d:\d\d:\d\d/, "TIME"));
  }, cases);
  assert.deepEqual(texts, ["now", "", "", "", "≥ TIME (in 42 s)", "≥ TIME (in 42 s)", "", "", "TIME",
    "not with this cost", "when it is resumed", "when the store answers", ""]);
});

const refused = (ms, name, more) => ({ at: at(ms), pool: "my/a", kind: "refuse", agent: name,
  reason: "terminal", count: 1, timeout_ms: 0, ...more });

test("refusals are one line from one cause to the next, for all agents", async () => {
  const events = [refused(-60_000, "blog", { reason: "limit", limit: MINUTE }),
    { at: at(-50_000), pool: "my/a", kind: "throttle", agent: "finder", about: "terminal" },
    { at: at(-50_000), pool: "my/a", kind: "stop" },
    ...Array.from({ length: 40 }, (_, n) => refused(-45_000 + n * 1_000, n % 2 ? "finder" : "indexer")),
    refused(-2_000, "docs", { reason: "never", limit: MINUTE, short_by: 7, by_cap: true })];
  await staged([pool("my/a", { agents: [agent("finder")] })], async (page) => {
    await says(page, ".events", "40 calls of finder and indexer were not admitted");
    const lines = await page.$$eval(".events span", (all) => all.map((one) =>
      one.innerText.replace(/\d\d:\d\d:\d\d/, "TIME")));
    assert.deepEqual(lines, ["1 call of docs was not admitted: it takes 7 more than the agent's own cap "
      + "on requests per minute ever allows",
    "40 calls of finder and indexer were not admitted: the provider stopped the pool, since TIME",
    "stopped by the provider", "finder got an error that stops the account",
    "1 call of blog was not admitted: requests per minute has no room"]);
  }, { events });
});

test("what is done on the page is done by the dashboard", async () => {
  await withHome(async (own) => {
    await own.up();
    const holder = own.hold("my/slots", "--limit", "parallel=2", "--as", "stuck");
    await until("it holds", async () => (await own.status("my/slots"))?.in_flight === 1);
    const page = await visit(own);
    await says(page, ".flying tbody", "stuck");
    await page.click(".acts button");
    await page.click("#ask-yes");
    await says(page, ".pill", "paused");
    await page.click("button ::-p-text(Resume)");
    await says(page, ".events", "resumed by dashboard");
    await says(page, ".events", "paused by dashboard");
    await page.click(".act button");
    await page.click("#ask-yes");
    await says(page, "#reader", "The lease of stuck");
    await says(page, ".events", `a lease of stuck (pid ${holder.pid}) was settled by dashboard`);
  });
});

test("an agent whose calls are refused was active when the last one was", async () => {
  const refused = { at: at(-5_000), pool: "my/a", kind: "refuse", agent: "blog", count: 1,
    reason: "terminal" };
  await staged([pool("my/a", { agents: [agent("blog", {}, { active_ms: 118_000 })] })],
    async (page) => {
      await says(page, ".agents tbody", "1 not admitted");
      const active = await page.$eval(".agents tbody .late", (one) => one.innerText);
      assert.match(active, /^\d+ s ago$/);
    }, { events: [refused] });
});

test("the priority of an agent without calls is its last one, or none", async () => {
  await withHome(async (own) => {
    await own.up();
    const hold = (...args) => own.run("-q", "hold", "my/slots", "--limit", "parallel=2", ...args,
      "--", "true");
    await hold("--as", "bg", "--priority", "background");
    await hold("--as", "plain");
    const page = await visit(own);
    const shown = (name) => page.$$eval(".agents tbody tr", (all, of) => all.find((one) =>
      one.querySelector(".name").innerText === of)?.querySelector("small").innerText, name);
    await says(page, ".agents tbody tr", "bg background");
    await says(page, ".agents tbody tr", "plain standard");
    const texts = await page.evaluate(async () => {
      const { Priorities } = await import("/ui/priorities.js");
      const all = new Priorities();
      all.note("my/a", "blog", "background", "2026-01-31T12:00:05.000Z");
      all.note("my/a", "blog", "critical", "2026-01-31T12:00:00.000Z");
      all.note("my/a", "docs", undefined, "2026-01-31T12:00:00.000Z");
      return [["my/a", "blog"], ["my/b", "blog"], ["my/a", "docs"]].map((of) => all.of(...of) ?? "");
    });
    assert.deepEqual(texts, ["background", "", ""]);
    assert.equal(await shown("bg"), "background");
  });
  // Of this one the journal has nothing.
  await staged([pool("my/a", { agents: [agent("quiet"), agent("urgent", {}, { priority: "critical" })] })],
    async (page) => {
      await says(page, ".agents tbody", "urgent");
      const small = await page.$$eval(".agents tbody small", (all) => all.map((one) => one.innerText));
      assert.deepEqual(small, ["", "critical"]);
    });
});

test("no refusal is stated since when the journal has the pool", async () => {
  const first = { at: at(-60_000), pool: "my/a", kind: "config", source: "file", result: "applied" };
  await staged([pool("my/a")], async (page) => {
    await says(page, ".counts", "no refusal since");
    const time = await page.evaluate((when) => new Date(when).toTimeString().slice(0, 8), first.at);
    await says(page, ".counts", time);
  }, { events: [first] });
  await staged([pool("my/a")], async (page) => {
    await says(page, ".counts", "no refusal in 8 days");
  }, { events: [{ ...first, at: at(-8 * 86_400_000 + 60_000) }] });
});
