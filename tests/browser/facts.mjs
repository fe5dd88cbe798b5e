// Whether the page states the truth where it is easily wrong: use by others, buckets, calls that
// were not admitted, instants in old figures, and a list that must not move. The test's own daemon
// shows each state at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { row, scene, staged, visit } from "./scene.mjs";
import { agent, at, lease, pause, pool, rate, slots, ticket } from "./stage.mjs";
import { findings, says, snapshots, text } from "./support.mjs";

const MINUTE = "requests per 1min";
const HOUR = "requests per 1h";

/** 75 of 5,000 by one agent, 4,925 by others with the same key: 71 were left to Standpipe. */
const shared = () => pool("github/core", { zone: "red",
  limits: [rate(HOUR, { amount: 5_000, used: 75, effective: 71, by_others: 4_925, outside: 2_340,
    margin_per_mille: 50 })],
  agents: [agent("triage", { [HOUR]: 75 }, { waiting: 1 })],
  tickets: [ticket("triage", 1, { limit: HOUR, not_before: at(3_207_000),
    not_before_ms: 3_207_000, deadline_ms: 194_000 })] });

test("use by others has the provider's limit as its base, in every view", async () => {
  await staged([shared()], async (page) => {
    await says(page, ".answers", "4,925 of 5,000 were used outside Standpipe, 75 by triage.");
    await says(page, ".answers", "Do Find the other users of this key (standpipe doctor)");
    await says(page, "#rail small", "99 % outside");
    const rows = await page.$$eval(".agents tbody tr", (all) => all.map((one) =>
      [one.querySelector(".name").innerText, one.querySelector(".uses b").innerText,
        one.querySelector(".part").innerText]));
    assert.deepEqual(rows, [["outside Standpipe", "4,925", "99 %"], ["triage", "75", "1 %"]]);
    await says(page, ".agents thead", "of limit");
    const widths = await page.$$eval(".gauge:not(.swatch) i", (all) => all.map((one) =>
      [one.className, one.style.left, one.style.width]));
    assert.deepEqual(widths.slice(0, 2), [["outside", "0%", "98.5%"], ["used", "98.5%", "1.5%"]]);
    await says(page, ".limits .use", "5,000 of 5,000 used, 4,925 outside Standpipe");
    await says(page, ".burn .readout", "requests/h 100 % (5,000 of 5,000): outside Standpipe 99 %");
    assert.doesNotMatch(await text(page, "body"), /\b[1-9]\d{2,} %(?<!100 %)/, "nothing above 100 %");
  });
});

/** A bucket that refilled what it passed: 36 of 59 in the last minute, and 59 are there again. */
const bucket = () => pool("anthropic/sonnet", {
  limits: [rate(MINUTE, { amount: 60, used: 0, last_period: 36, effective: 59, refill: 59, left: 59,
    margin_per_mille: 10, full_again_ms: 0 })],
  agents: [agent("blog", { [MINUTE]: 17 }), agent("research", { [MINUTE]: 15 }),
    agent("nightly", { [MINUTE]: 4 })] });

test("the use of a bucket is what passed in its period; its level is a second mark", async () => {
  await staged([bucket()], async (page) => {
    await says(page, ".answers", "Most used: requests per minute, 61 %: blog 29 %, research 25 %");
    await says(page, "#rail small", "61 % req/min");
    const [used, level] = await page.$$eval(".gauge:not(.swatch) :is(.used, .level)", (all) =>
      all.map((one) => [one.style.left, one.style.width]));
    assert.deepEqual([used, level], [["0%", "60%"], ["0%", ""]]);
    await says(page, ".limits", "59 left now");
    await says(page, ".limits .use", "36 of 59 used in the last minute");
    await page.waitForSelector(".burn svg.plot[aria-label]");
    const label = await page.$eval(".burn svg.plot", (svg) => svg.getAttribute("aria-label"));
    assert.match(label, /requests per minute: now 61 %, highest 61 %/);
    await says(page, ".burn .readout", "requests/min 61 % (36 of 59)");
  });
});

test("no row of the list of pools moves while calls come and go", async () => {
  const busy = (name, n) => pool(name, { limits: [rate(MINUTE, { amount: 10, used: n })],
    leases: n % 2 ? [lease("a", "blog")] : [], tickets: n > 8 ? [ticket("docs", 1)] : [] });
  const all = (n) => ["my/a", "my/b", "my/c"].map((name, at_) => busy(name, (n * 3 + at_ * 4) % 11));
  await staged(all(0), async (page, stage) => {
    await page.waitForSelector("#rail li");
    await page.evaluate(() => {
      globalThis.shifts = [];
      new PerformanceObserver((list) => globalThis.shifts.push(...list.getEntries().flatMap((one) =>
        one.sources.filter(({ previousRect: a, currentRect: b }) => a.y !== b.y)
          .map(({ node }) => node?.parentElement?.closest("nav")?.id))))
        .observe({ type: "layout-shift" });
    });
    const places = () => page.$$eval("#rail li", (rows) => rows.map((one) =>
      [one.querySelector(".name").innerText, one.getBoundingClientRect().top]));
    const before = await places();
    for (let n = 1; n < 5; n += 1) {
      stage.set(all(n));
      await snapshots(page, 1);
      assert.deepEqual(await places(), before);
    }
    assert.deepEqual(await page.evaluate(() => globalThis.shifts.filter((one) => one)), []);
  });
});

test("the list is sorted by what lasts, and not under the pointer", async () => {
  const page = await visit(scene.home);
  const [orders, ranks] = await page.evaluate(async (pools) => {
    const { Order, rankOf } = await import("/ui/state.js");
    const [calm, held] = [pools, [pools[0], { ...pools[1], terminal: {} }]];
    const order = new Order();
    const names = (of, isHeld, now) => order.sort(of, false, isHeld, now)
      .map(({ pool: name }) => name).join();
    return [[names(calm, false, 0), names(held, false, 1_000), names(held, false, 5_000),
      names(held, true, 6_001), names(held, false, 6_002)], pools.map((of) => rankOf(of, false))];
  }, [pool("my/a", { leases: [lease("a", "x")] }), pool("my/b"),
    pool("my/hand", { pause: pause(60_000) }), pool("my/shadow", { enforce: false }),
    pool("my/waits", { tickets: [ticket("docs", 1, { waits_ms: 2_000 })] }),
    pool("my/longer", { tickets: [ticket("docs", 1, { waits_ms: 90_000 })] })]);
  assert.deepEqual(orders.map((one) => one.split(",")[0]),
    ["my/longer", "my/a", "my/a", "my/a", "my/b"]);
  const [busy, idle, hand, shadow, waits, longer] = ranks;
  assert.deepEqual([longer, waits, hand, busy, shadow, idle],
    [longer, waits, hand, busy, shadow, idle].sort((a, b) => a - b));
});

test("a change is noted without moving the page, if it lasts and is not one's own", async () => {
  const calm = () => pool("my/a", { limits: [slots(2, 0)] });
  const paused = (ms) => pool("my/b", { pause: pause(ms) });
  await staged([calm(), pool("my/b")], async (page, stage) => {
    await says(page, "main h2", "my/a");
    const top = await page.$eval(".answers", (one) => one.getBoundingClientRect().top);
    stage.set([calm(), paused(2_000)]);
    await snapshots(page, 2);
    assert.equal(await text(page, "#notes"), "", "a short pause is no news");
    stage.set([calm(), pool("my/b")]);
    await snapshots(page, 2);
    stage.set([calm(), paused(20_000)]);
    await says(page, "#notes", "my/b is paused for 20 s.");
    await says(page, "#reader", "my/b is paused for 20 s.");
    assert.equal(await page.$eval("#notes", (one) => getComputedStyle(one).position), "fixed");
    stage.set([calm(), pool("my/b")]);
    await says(page, "#notes", "my/b admits calls again.");
    // One message a minute for readers.
    assert.equal(await text(page, "#reader"), "my/b is paused for 20 s.");
    assert.equal(await page.$eval(".answers", (one) => one.getBoundingClientRect().top), top);
    // What the reader did is visible where it was done.
    await page.click(".acts button");
    await page.click("#ask-yes");
    stage.set([{ ...calm(), pause: pause(60_000, "dashboard") }, pool("my/b")]);
    await says(page, ".pill", "paused");
    assert.doesNotMatch(await text(page, "#notes"), /my\/a/);
  });
});

const refused = (name, reason, more) => ({ at: at(-5_000), pool: "my/hand", kind: "refuse",
  agent: name, reason, count: 1, ...more });

test("calls that were not admitted are listed and counted", async () => {
  const events = [refused("blog", "pause", { count: 2 }), refused("blog", "pause"),
    refused("research", "never", { limit: "input_tokens per 1min", short_by: 500 }),
    { at: at(-4_000), pool: "my/hand", kind: "wait", agent: "nightly", count: 1, waited_ms: 60_000,
      longest_ms: 60_000, ended: "refused", reason: "limit", limit: MINUTE },
    { at: at(-3_000), pool: "my/hand", kind: "wait", agent: "docs", count: 11, waited_ms: 90_000,
      longest_ms: 9_000, ended: "admitted", reason: "limit", limit: MINUTE }];
  const hand = pool("my/hand", { pause: pause(600_000), agents: [agent("blog")] });
  await staged([hand], async (page) => {
    await says(page, ".answers", "5 calls of nightly, research and blog were not admitted.");
    const rows = await page.$$eval(".turned tbody tr", (all) => all.map((one) =>
      [...one.cells].map((cell) => cell.innerText.trim())).map(([who, n, why, , again]) =>
      [who, n, why, again.replace(/\d\d:\d\d:\d\d/, "TIME")]));
    assert.deepEqual(rows.sort(), [["blog", "3", "the pool is paused", "TIME"],
      ["nightly", "1", "timed out: requests per minute has no room", "TIME"],
      ["research", "1", "it takes 500 more than input_tokens per minute ever allows",
        "not with this cost"]]);
    await says(page, ".agents tbody tr", "3 not admitted");
    // A call that gave up is not one of those that were admitted.
    const lines = await page.$$eval(".events span", (all) => all.map((one) => one.innerText));
    assert.ok(lines.some((one) => one.startsWith("11 calls of docs waited")), lines.join());
    assert.ok(lines.some((one) => one.includes("nightly") && one.includes("then refused")), lines);
    await page.select(".recent select", "not admitted");
    assert.equal((await page.$$(".events li")).length, 3);
  }, { events });
});

test("when the next and the last call are admitted, and who gives up before", async () => {
  const wait = (name, n, ms, more) => ticket(name, n, { until: at(ms), until_ms: ms, ...more });
  const limits = [rate(MINUTE, { amount: 8, used: 8 })];
  await staged([pool("web/search", { limits, tickets: [wait("blog", 1, 42_000),
    wait("nightly", 2, 57_000)] })], async (page, stage) => {
    await says(page, ".answers", "Next blog");
    const next = await text(page, ".answers div:nth-child(2)");
    assert.match(next.replace(/\s+/g, " "),
      /^Next blog in 42 s \(\d\d:\d\d:\d\d\); nightly last, in 57 s \(\d\d:\d\d:\d\d\)$/);
    stage.set([pool("web/search", { limits, tickets: [wait("blog", 1, 42_000,
      { deadline_ms: 9_000 })] })]);
    await says(page, ".answers .late", "blog gives up in 9 s, before its turn: in 42 s");
    await says(page, ".answers", "raise its --timeout above 46 s");
  });
});

test("old figures have instants, and no length that would go on counting", async () => {
  const pools = [pool("web/search", { limits: [rate(MINUTE, { amount: 8, used: 8 })],
    agents: [agent("blog", { [MINUTE]: 8 })], leases: [lease("a", "blog")],
    tickets: [ticket("blog", 1, { until: at(42_000), until_ms: 42_000 })] })];
  const lengths = /\b\d+ (s|min)\b/;
  await staged(pools, async (page, stage) => {
    await says(page, ".answers", "in 42 s");
    page.expectsErrors = true;
    await stage.down();
    await says(page, "#gone", "The daemon has not answered");
    for (const css of [".answers", ".waiting tbody", ".agents tbody", ".flying tbody", "#rail"]) {
      assert.doesNotMatch(await text(page, css), lengths, css);
    }
    await says(page, ".waiting tbody", "since");
  });
});

test("a pool that does not exist is not another one", async () => {
  const pools = [pool("my/stopped", { terminal: { until: null, for_ms: null, look_ms: null } }),
    pool("web/search")];
  for (const [hash, name] of [["#pool=web%2Fserch", "web/serch"], ["#pool=%E0%A4%A", ""]]) {
    await staged(pools, async (page) => {
      await says(page, "main h2", `No pool ${name}`);
      if (name) assert.equal(await text(page, ".missing li a"), "web/search");
      assert.equal(await page.$("main button"), null, "nothing can be done");
      assert.deepEqual(await findings(page), []);
      await page.click(".missing p:last-child a");
      await says(page, "main h2", "my/stopped");
    }, { hash });
  }
});

test("the chosen pool is in sight in a long list, and the page stays at its top", async () => {
  const pools = Array.from({ length: 40 }, (_, n) => pool(`team${n}/api`));
  await staged(pools, async (page) => {
    await says(page, "main h2", "team35/api");
    const [top, bottom, high, scrolled] = await page.$eval("#rail [aria-current]", (one) => {
      const box = one.getBoundingClientRect();
      return [box.top, box.bottom, innerHeight, scrollY];
    });
    assert.ok(top >= 0 && bottom <= high && scrolled === 0, `${top} to ${bottom} of ${high}`);
  }, { hash: "#pool=team35%2Fapi" });
});

test("a question about a lease follows it", async () => {
  const of = (leases) => [pool("my/build", { limits: [slots(2, leases.length)], leases })];
  const one = lease("one", "research");
  await staged(of([one]), async (page, stage) => {
    const ask = async () => (await (await row(page, ".flying", "research")).$("button")).click();
    await page.waitForSelector(".act button");
    await ask();
    await says(page, "dialog", "Settle research’s lease on my/build?");
    stage.set(of([]));
    await says(page, "dialog", "This lease has ended by itself.");
    assert.equal(await page.$eval("#ask-yes", (button) => button.checkVisibility()), false);
    await page.click("#ask-no");
    stage.set(of([one]));
    stage.answers["/v1/leases/one"] = [{ detail: "it has ended" }, 410];
    await page.waitForSelector(".act button");
    await ask();
    page.expectsErrors = true;
    await page.click("#ask-yes");
    await says(page, "#notes", "This lease has ended already.");
    assert.equal(await page.$eval("#wrong", (banner) => banner.hidden), true);
  });
});

test("the empty page asks for what this daemon accepts", async () => {
  const file = "/etc/standpipe/standpipe.toml";
  await staged([], async (page, stage) => {
    await says(page, "#empty", `${file} describes no pool`);
    await says(page, "#empty pre", "[pool.\"my/slots\"] parallel = 2");
    assert.doesNotMatch(await text(page, "#empty"), /The first call creates a pool/);
    assert.deepEqual(await findings(page), []);
    stage.set([]);
    await says(page, "#empty", "The first call creates a pool.");
  }, { more: { closed_by: file } });
});

test("a call whose usage is unknown has no zeros, and a long name breaks nowhere else", async () => {
  const name = "standard-agent-with-a-name-of-more-than-forty-characters";
  await staged([pool("my/a", { limits: [slots(2, 1)], leases: [lease("a", name)] })],
    async (page, stage) => {
      stage.proxied = [{ at: at(), agent: "blog", pool: "my/a", model: "haiku", status: 200,
        input_tokens: 0, output_tokens: 0, micro_usd: 0, waited_ms: 0 }];
      await says(page, ".proxied tbody", "200, no usage");
      const cells = await page.$$eval(".proxied tbody td", (all) => all.map((one) => one.innerText));
      assert.ok(!cells.some((one) => /^(input|output)? ?0$/.test(one)), cells.join(" | "));
      const lines = await page.$eval(".flying small", (one) => {
        const range = document.createRange();
        range.selectNodeContents(one);
        return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
      });
      assert.equal(lines, 1, "the meta of a lease is one line of its own");
    }, { wide: 390, high: 844, isPhone: true });
});

test("there is no empty landmark, and a gauge says what it shows", async () => {
  await staged([pool("my/a", { limits: [rate(MINUTE, { amount: 60, used: 57, held: 2, effective: 59,
    margin_per_mille: 10 })] })], async (page) => {
    await page.waitForSelector("[role=meter]");
    const empty = await page.$$eval("section, nav, ul, ol, [role=region]", (all) => all.filter((one) =>
      one.checkVisibility() && one.innerText.trim() === "").map((one) => one.outerHTML));
    assert.deepEqual(empty, []);
    const [value, shown] = await page.$eval(".limits .rate", (one) => [
      one.querySelector("[role=meter]").ariaValueText, one.querySelector(".use").innerText]);
    assert.equal(value, "59 of 59 used, full");
    assert.ok(shown.startsWith("59 of 59 used"), shown);
  });
});

test("percentages are rounded half up, and those of a full limit add up", async () => {
  const page = await visit(scene.home);
  const texts = await page.evaluate(async () => {
    const { share, sharesOf } = await import("/ui/use.js");
    return [share(3, 8), share(1, 8), share(2, 3), share(999, 1_000), share(1, 1_000), share(8, 8),
      sharesOf([3, 2, 2, 1], 8).join()];
  });
  assert.deepEqual(texts, ["38 %", "13 %", "67 %", "99 %", "<1 %", "100 %", "38 %,25 %,25 %,12 %"]);
});

test("the advice names the cause, and an agent is followed by the address", async () => {
  const of = (more) => pool("web/search", { limits: [rate(MINUTE, { amount: 10, used: 8,
    effective: 8, ...more })], agents: [agent("blog", { [MINUTE]: 6 }),
    agent("docs", { [MINUTE]: 2 })], tickets: [ticket("docs", 1), ticket("blog", 2)] });
  await staged([of({ margin_per_mille: 200 })], async (page) => {
    await says(page, ".answers", "blog uses most of it: give it a cap, or wait.");
    await (await (await row(page, ".waiting", "blog")).$("a")).click();
    await says(page, ".answers", "Agent blog: 1 call waits, the first at place 2");
    assert.equal(await page.evaluate(() => location.hash), "#pool=web%2Fsearch&agent=blog");
    assert.equal((await page.$$("tr.mine")).length, 2);
  });
});

test("a full rate has the advice of the command line, whatever its margin and its calls in flight",
  async () => {
    const page = await visit(scene.home);
    const texts = await page.evaluate(async (pools) => {
      const { adviceFor } = await import("/ui/advice.js");
      return pools.map((of) => adviceFor(of.tickets[0], of));
    }, [{ used: 8, effective: 8, margin_per_mille: 200 }, { used: 4, held: 6 }].map((of) => pool("a", {
      limits: [rate(MINUTE, { amount: 10, ...of })], tickets: [ticket("docs", 1)] })));
    for (const one of texts) {
      assert.equal(one, "Wait; request less; or raise the limit in standpipe.toml if the provider "
        + "allows more.");
    }
  });

test("the daemon's own pid names no call", async () => {
  await staged([pool("my/a", { limits: [slots(1, 1)], leases: [lease("a", "blog", { daemon: true,
    pid: 15_364 })], tickets: [ticket("docs", 1, { daemon: true, pid: 15_364 })] })], async (page) => {
    await says(page, ".flying tbody", "in 10 min");
    assert.doesNotMatch(await text(page, "main"), /15364|its process/);
    assert.doesNotMatch(await page.$eval(".flying button", (one) => one.ariaLabel), /pid/);
  });
});

test("limits that are learned have no source in a configuration", async () => {
  const origin = { source: "code", version: null, written: null, changes: 0, learned: true };
  await staged([pool("my/a", { origin })], (page) =>
    says(page, ".settings", "configured by learned from responses"));
});

test("calls that Standpipe refused are not sent, and are no refusals of the provider", async () => {
  const call = (more) => ({ at: at(), agent: "docs", pool: "my/a", status: 429, input_tokens: 0,
    output_tokens: 0, micro_usd: 0, waited_ms: 0, ...more });
  await staged([pool("my/a")], async (page, stage) => {
    stage.proxied = [call(), call({ not_sent: "terminal" }), call({ not_sent: "terminal" })];
    const rows = () => page.$$eval(".proxied tbody tr", (all) => all.map((one) =>
      [one.cells[2].innerText, one.cells[3].innerText, one.cells[2].className]));
    await says(page, ".proxied", "tokens, 2 not sent");
    assert.deepEqual(await rows(), [["429", "1", "n failed"], ["not sent (stopped)", "2", "n"]]);
    await page.click(".proxied .small");
    assert.equal((await rows()).length, 3);
  });
});

test("after a loss of the ledger the page has the words and the remedy of the command line",
  async () => {
    const learning = { until: at(273_000), for_ms: 273_000 };
    const limits = [rate(MINUTE, { amount: 16 }), { ...slots(2, 0), left: 0 }];
    const remedy = "Do If no call is running: standpipe store reset my/a --yes; else wait.";
    await staged([pool("my/a", { learning, limits })], async (page, stage) => {
      await says(page, ".pill", "full");
      const now = (await text(page, ".answers")).replace(/\s+/g, " ");
      assert.match(now, new RegExp("^Now The store lost the ledger: its slots count as full until "
        + "[\\d:]+ \\(in 4 min 33 s\\); its rates returned\\. No call waits\\. Do If"));
      await says(page, ".answers", remedy);
      assert.equal(await page.$(".notices li"), null, "it is said once");
      await says(page, ".limits .apart", "0 of 2 in flight · full until");
      assert.doesNotMatch(await text(page, ".limits .apart"), /all free/);
      await says(page, ".meanings summary", "Glossary");
      assert.match(await page.$eval(".meanings", (one) => one.textContent), /ledger lost/);
      stage.set([pool("my/a", { learning, limits, tickets: [ticket("blog", 1, { reason: "learning",
        limit: "parallel", until: learning.until, until_ms: 273_000, deadline_ms: 9_000 })] })]);
      await says(page, ".waiting .chip", "ledger lost");
      await says(page, ".answers", remedy);
      await says(page, ".notices", "The store lost the ledger: its slots count as full until");
    });
  });
