// What a reader follows with the eye stays where it is: the sentence about the first call, the rows
// of the agents, the state of a pool in steady use.

import assert from "node:assert/strict";
import { test } from "node:test";
import { scene, staged, visit } from "./scene.mjs";
import { agent, at, lease, pool, rate, slots, ticket } from "./stage.mjs";
import { says, snapshots, text } from "./support.mjs";

const MINUTE = "requests per 1min";
const TOKENS = "input_tokens per 1min";
const DAY = "usd per 1d";

test("two rules that deny the first call in turn are both named", async () => {
  const page = await visit(scene.home);
  const spread = (limit) => ticket("crawler", 1, { since: "then", reason: "spread", limit,
    superior: "release" });
  const full = ticket("crawler", 1, { since: "then", limit: MINUTE });
  const texts = await page.evaluate(async (steps) => {
    const { Reasons, summary } = await import("/ui/diagnosis.js");
    const reasons = new Reasons();
    return steps.map(([now, of]) => summary({ enforce: true, waiting: 1, agents: [], limits: [],
      tickets: [of] }, { paused: "", reasons: reasons.of(of, now) }))
      .map(([said, , advice]) => `${said} ${advice}`.replace("crawler waits: ", ""));
  }, [[0, spread(TOKENS)], [1_000, spread(DAY)], [2_000, spread(TOKENS)], [3_000, spread(DAY)],
    [5_500, spread(TOKENS)], [8_100, spread(TOKENS)], [9_000, full], [10_000, spread(TOKENS)],
    [11_000, full], [12_000, { ...full, since: "later" }]]);
  const paced = (limits, verb) => `background is paced so that ${limits} ${verb} while release is `
    + "active.";
  const advice = " Raise the priority of crawler, or set spread = false in the pool.";
  const both = `${paced("input_tokens per minute and usd per day", "last")}${advice}`;
  assert.deepEqual(texts.slice(0, 6), [`${paced("input_tokens per minute", "lasts")}${advice}`,
    `${paced("usd per day", "lasts")}${advice}`, both, both, both,
    // The other has not denied it for five seconds.
    `${paced("input_tokens per minute", "lasts")}${advice}`]);
  assert.match(texts[6], /^requests per minute has no room/, "a change is shown at once");
  const turn = "while release is active; in turn: requests per minute has no room (short by 1).";
  assert.ok(texts[7].includes(turn) && texts[8].includes(turn), texts.slice(7).join("\n"));
  assert.equal(texts[7].split(".").at(-2), texts[8].split(".").at(-2), "nor does the advice change");
  assert.match(texts[9], /^requests per minute has no room/, "another call begins anew");
});

test("next is the call with the earliest instant, wherever it stands", async () => {
  const paced = (name, n, ms) => ticket(name, n, { reason: "spread", limit: TOKENS, or_later: true,
    expected: at(ms), expected_ms: ms, waiting_for: "a call in flight to end" });
  const calls = [paced("triage", 1, 213_000), paced("crawler", 2, 7_000), paced("crawler", 3, 12_000)];
  const limits = [rate(TOKENS, { amount: 60, used: 30 })];
  await staged([pool("my/a", { limits, tickets: calls })], async (page, stage) => {
    await says(page, ".answers", "3 calls wait, triage first: background is paced");
    const next = await text(page, ".answers div:nth-child(2)");
    assert.match(next.replace(/\s+/g, " "), new RegExp("^Next crawler \\(place 2\\) when a call in "
      + "flight ends, not before [\\d:]+ \\(in 7 s\\); triage last, when a call in flight ends, not "
      + "before [\\d:]+ \\(in 3 min 33 s\\)$"));
    await says(page, ".waiting .sum", "Paced calls may pass each other.");
    // One instant has one text; a bound has its sign.
    const shown = await page.$$eval(".waiting .when time", (all) => all.map((one) => one.innerText));
    assert.match(shown[1], /^≥ [\d:]+ \(in 7 s\)$/);
    assert.ok(next.includes(shown[1].replace("≥ ", "not before ")));
    // In the list of pools it comes first: the line may be cut.
    await says(page, "#rail small", "next ≥ 7 s · 50 % input tokens/min");
    // Who is behind others in the queue is not next.
    const behind = ticket("docs", 2, { reason: "order", limit: TOKENS, calls_ahead: 1,
      expected: at(1_000), expected_ms: 1_000 });
    stage.set([pool("my/a", { limits, tickets: [ticket("blog", 1, { limit: "parallel",
      waiting_for: "a call in flight to end" }), behind] })]);
    await says(page, ".answers", "Next blog when a call in flight ends");
    assert.equal(await page.$eval(".waiting .sum", (one) => one.hidden), true);
  });
});

test("a pool in steady use is active between its calls, as on the command line", async () => {
  const page = await visit(scene.home);
  const used = (ms, more) => pool("my/a", { agents: [agent("blog", {}, { active_ms: ms, ...more })] });
  const words = await page.evaluate(async (pools) => {
    const { stateOf } = await import("/ui/state.js");
    return pools.map((of) => stateOf(of)[1]);
  }, [used(1_500), used(59_999), used(60_000), used(0, { never_called: true }), pool("my/b"),
    pool("my/c", { leases: [lease("a", "x")] })]);
  assert.deepEqual(words, ["active", "active", "idle", "idle", "idle", "active"]);
});

test("an agent overtakes another after five seconds, and not under the pointer", async () => {
  const page = await visit(scene.home);
  const orders = await page.evaluate(async () => {
    const { CalmOrder } = await import("/ui/order.js");
    const order = new CalmOrder();
    return [[0, { a: 9, b: 5, c: 1 }], [1_000, { a: 4, b: 5, c: 1 }], [2_000, { a: 6, b: 5, c: 1 }],
      [3_000, { a: 4, b: 5, c: 1 }], [7_999, { a: 4, b: 5, c: 1 }], [8_000, { a: 4, b: 5, c: 1 }, true],
      [8_001, { a: 4, b: 5, c: 1 }], [9_000, { a: 4, c: 1, d: 3 }], [9_001, { a: 4, c: 1, e: 3 }, true]]
      .map(([now, sizes, isHeld]) => order.sort(Object.keys(sizes), (name) => name,
        (name) => sizes[name], isHeld, now).join(""));
  });
  assert.deepEqual(orders, ["abc", "abc", "abc", "abc", "abc", "abc", "bac", "adc", "ace"]);
});

test("no row of the agents moves while calls come and go", async () => {
  const users = (n) => pool("my/a", { limits: [rate(MINUTE, { amount: 60, used: 30 }), slots(4, 1)],
    agents: ["blog", "docs", "news"].map((name, of) => agent(name, { [MINUTE]: 10 + (n * 7 + of) % 3,
      ...(n % 3 === of ? { parallel: 1 } : {}) }, { in_flight: n % 3 === of ? 1 : 0 })) });
  await staged([users(0)], async (page, stage) => {
    const names = () => page.$$eval(".agents tbody .name", (all) => all.map((one) => one.innerText));
    await says(page, ".agents tbody", "news");
    const before = await names();
    for (let n = 1; n < 5; n += 1) {
      stage.set([users(n)]);
      await snapshots(page, 1);
      assert.deepEqual(await names(), before);
    }
  });
});

test("equal shares have equal percentages", async () => {
  const page = await visit(scene.home);
  const texts = await page.evaluate(async () => {
    const { sharesOf } = await import("/ui/use.js");
    return [sharesOf([1, 1, 1], 3).join(), sharesOf([2, 2, 1, 1], 6).join(),
      sharesOf([3, 2, 2, 1], 8).join()];
  });
  assert.deepEqual(texts, ["33 %,33 %,33 %", "33 %,33 %,17 %,17 %", "38 %,25 %,25 %,12 %"]);
});

test("each percentage has its base where there are two", async () => {
  const shared = rate("requests per 1h", { amount: 5_000, used: 75, effective: 71, by_others: 4_925 });
  const of = (limits) => pool("my/a", { limits, agents: [agent("triage", { [MINUTE]: 20,
    "requests per 1h": 50 })] });
  await staged([of([rate(MINUTE, { amount: 60, used: 20 }), shared])], async (page, stage) => {
    await says(page, ".agents thead", "used share");
    const parts = () => page.$$eval(".agents .part", (all) => all.map((one) => one.innerText));
    assert.deepEqual(await parts(), ["99 % of limit", "33 % of usable", "1 % of limit"]);
    stage.set([of([rate(MINUTE, { amount: 60, used: 20 })])]);
    await says(page, ".agents thead", "used of usable");
    assert.deepEqual(await parts(), ["33 %", ""]);
  });
});

test("the marks of a plot are named, and a stop is shaded like a pause", async () => {
  const event = (ms, kind, more) => ({ at: at(ms), pool: "my/a", kind, ...more });
  const stopped = pool("my/a", { terminal: { until: null, for_ms: null, look_ms: 60_000 },
    limits: [rate(MINUTE, { amount: 60, used: 20 })] });
  const events = [event(-50_000, "config", { source: "file", result: "applied" }),
    event(-40_000, "pause", { for_ms: 5_000, until: at(-35_000), by: "ops" }),
    event(-36_000, "resume", { by: "ops" }), event(-20_000, "stop")];
  const history = [{ pool: "my/a", limits: [{ limit: MINUTE, unit: "requests", agents: [],
    samples: Array.from({ length: 28 }, (_, n) => [Date.now() - 56_000 + n * 2_000, 20, 0, 60]) }] }];
  await staged([stopped], async (page, stage) => {
    await says(page, ".burn .marked", "▲ refused by the provider · shaded: paused and stopped · "
      + "dotted: configuration applied, resumed");
    const widths = () => page.$$eval(".burn rect.held", (all) => all.map((one) =>
      Math.round(Number(one.getAttribute("width")))));
    const [pausedFor, stoppedFor] = await widths();
    assert.ok(stoppedFor > 4 * pausedFor, `${stoppedFor} px and ${pausedFor} px`);
    // A stop that has ended at an unknown time is not drawn as if it went on.
    stage.set([{ ...stopped, terminal: null }]);
    await page.waitForFunction(() => document.querySelectorAll(".burn rect.held").length === 1);
  }, { events, history });
});

test("a call with a bound is not next before one that waits for an event", async () => {
  const event = "a call in flight to end";
  const release = ticket("release", 1, { limit: "parallel", waiting_for: event });
  const behind = ticket("blog", 2, { reason: "order", limit: "parallel", waiting_for: event });
  const paced = (more) => ticket("crawler", 6, { reason: "spread", limit: MINUTE, waiting_for: event,
    not_before: at(32_000), not_before_ms: 32_000, ...more });
  const limits = [rate(MINUTE, { amount: 60, used: 30 }), slots(4, 4)];
  const of = (...tickets) => [pool("my/a", { limits, tickets })];
  await staged(of(release, behind, paced()), async (page, stage) => {
    const next = async () => (await text(page, ".answers div:nth-child(2)")).replace(/\s+/g, " ");
    await says(page, ".answers", "Next release");
    assert.equal(await next(), "Next release when a call in flight ends");
    assert.doesNotMatch(await text(page, "#rail small"), /next/);
    // One that gives up before its turn has a line of its own.
    stage.set(of(release, behind, paced({ deadline_ms: 14_000 })));
    await says(page, ".notices", "crawler (place 6) gives up in 14 s, before its turn: when a call in "
      + "flight ends, not before");
    assert.equal(await next(), "Next release when a call in flight ends");
    await says(page, ".answers", "Do Wait for a call to end");
    // What keeps the first call back is its own.
    stage.set(of({ ...release, reason: "cap" }, behind, paced()));
    await says(page, ".answers", "Next crawler (place 6)");
    await says(page, "#rail small", "next ≥ 32 s");
  });
});

test("what to do changes with the state, or for what lasts", async () => {
  const page = await visit(scene.home);
  const texts = await page.evaluate(async () => {
    const { CalmText } = await import("/ui/order.js");
    const calm = new CalmText();
    return [[0, "a", "x"], [1_000, "b", "x"], [5_000, "a", "x"], [6_000, "b", "x"], [10_999, "b", "x"],
      [11_000, "b", "x"], [12_000, "a", "x"], [13_000, "a", "y"]].map(([now, said, kind]) =>
      calm.of(said, kind, now)).join("");
  });
  assert.equal(texts, "aaaaabba");
});
