// Reading the page: figures of the plots, the filter of events, wide screens, and the same words as
// the command line.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { visit, withHome } from "./scene.mjs";
import { findings, says, screenshot, snapshots, text } from "./support.mjs";

const RATE = `[pool."my/rate"]
requests = "10/h"
parallel = 4
margin = 0
spread = false
`;

/** A pool of which one agent uses three calls. */
async function used(own) {
  await own.up();
  for (let n = 0; n < 3; n += 1) await own.reserve({ pool: "my/rate", agent: "blog" });
}

const valueOf = (page, plot) => page.$eval(`${plot} .handle`, (one) =>
  [Number(one.ariaValueNow), Number(one.ariaValueMax), one.ariaValueText]);

test("a plot shows the figures of the instant under the pointer, and who used them", async () => {
  await withHome(async (own) => {
    await used(own);
    const page = await visit(own);
    await says(page, ".burn .readout", "30 %");
    const { x, y, width, height } = await (await page.$(".burn .handle")).boundingBox();
    await page.mouse.move(x + width - 10, y + height / 2);
    await says(page, ".burn .readout", "requests/h 30 % (3 of 10): blog 30 %");
    assert.match(await text(page, ".burn .readout"), /^\d\d:\d\d:\d\d \((now|\d s ago)\)/);
    // One cursor for both plots.
    await says(page, ".inflight .readout", "3 of 4 slots in use: blog (3 slots)");
    await page.waitForSelector(".burn .hair");
    await snapshots(page, 2);
    await says(page, ".burn .readout", "requests/h 30 %");
    await screenshot(page, "reading");
    await page.mouse.move(x + width / 2, y - 20);
    await page.waitForSelector(".burn .readout:not(.reading)");
    assert.equal(await page.$(".burn .hair"), null);
  }, RATE);
});

test("a plot is read with the arrow keys, and an event at its instant", async () => {
  await withHome(async (own) => {
    await used(own);
    await own.run("pause", "my/rate", "--for", "30min", "--as", "ops");
    const page = await visit(own);
    await says(page, ".events", "paused by ops for 30 min");
    await page.waitForSelector(".burn .note.warn");
    await snapshots(page, 3);
    // Standing still, so that no new instant comes between two keys.
    await page.click("#freeze");
    await says(page, "#link", "frozen at");
    await page.focus(".burn .handle");
    await page.keyboard.press("End");
    const [last, most, figures] = await valueOf(page, ".burn");
    assert.equal(last, most);
    assert.match(figures, /requests\/h 30 % \(3 of 10\): blog 30 %/);
    await page.keyboard.press("ArrowLeft");
    assert.equal((await valueOf(page, ".burn"))[0], last - 1);
    await page.keyboard.press("Home");
    assert.equal((await valueOf(page, ".burn"))[0], 0);
    const seen = [];
    for (let at = 0; at <= most; at += 1) {
      seen.push((await valueOf(page, ".burn"))[2]);
      await page.keyboard.press("ArrowRight");
    }
    assert.ok(seen.some((one) => one.includes("paused by ops for 30 min")), seen.join(" | "));
    await says(page, ".burn .readout", "requests/h 30 %");
    assert.deepEqual(await findings(page), []);
    await page.keyboard.press("Escape");
    await page.waitForSelector(".burn .readout:not(.reading)");
  }, RATE);
});

test("a finger reads a plot, and the figures stay", async () => {
  await withHome(async (own) => {
    await used(own);
    await own.run("throttle", "my/rate", "--as", "docs", "--kind", "overload");
    const page = await visit(own, { wide: 390, high: 844, isPhone: true });
    await says(page, ".refusals p", "1 refusal of 1 agent.");
    for (const [plot, words] of [[".burn", "3 of 10"], [".refusals", "overload 1: docs"]]) {
      await page.$eval(`${plot} .handle`, (one) => one.scrollIntoView({ block: "center" }));
      const { x, y, width, height } = await (await page.$(`${plot} .handle`)).boundingBox();
      await page.touchscreen.tap(x + width - 9, y + height / 2);
      await says(page, `${plot} .readout`, words);
      await snapshots(page, 2);
      await says(page, `${plot} .readout`, words);
      const [left, right] = await page.$eval(`${plot} .readout`, (one) => {
        const box = one.getBoundingClientRect();
        return [box.left, innerWidth - box.right];
      });
      assert.ok(left >= 0 && right >= 0, `${plot}: ${left} px and ${right} px beside it`);
    }
  }, RATE);
});

test("a plot is as long as what is known", async () => {
  await withHome(async (own) => {
    await used(own);
    const page = await visit(own);
    await says(page, ".burn h3", "Use of the limits, last 1 min");
    const titles = await page.evaluate(async () => {
      const { Burn } = await import("/ui/burn.js");
      const { Cursor } = await import("/ui/plot.js");
      const { History } = await import("/ui/history.js");
      const { shown } = await import("/ui/app.js");
      const [pool] = shown().pools;
      const now = Date.parse(pool.at);
      return [50_000, 90_000, 200_000, 580_000].map((ago) => {
        const history = new History();
        history.seed({ every_ms: 2_000, pools: [{ pool: pool.pool, limits: [{
          limit: pool.limits[0].limit, samples: [[now - ago, 1, 0, 10]] }] }] });
        const burn = new Burn(new Cursor());
        burn.update(pool, history, [], { now, isOld: false });
        return burn.title.textContent.split("last ")[1];
      });
    });
    assert.deepEqual(titles, ["1 min", "2 min", "5 min", "10 min"]);
  }, RATE);
});

test("events are filtered by kind and by agent, and nothing of it is stored", async () => {
  await withHome(async (own) => {
    await own.up();
    for (const agent of ["docs", "blog"]) {
      await own.run("throttle", "my/rate", "--as", agent, "--kind", "overload");
    }
    await own.run("pause", "my/rate", "--for", "30min", "--as", "ops");
    const page = await visit(own);
    const [kind, agent] = ["Kind", "Agent"].map((of) => `.recent select[aria-label^=${of}]`);
    const lines = () => page.$$eval(".events li span", (all) => all.map((one) => one.innerText));
    await says(page, ".events", "paused by ops for 30 min");
    assert.ok((await lines()).length >= 4);
    await page.select(kind, "refusals");
    assert.deepEqual(await lines(), ["blog got an overload error", "docs got an overload error"]);
    await page.select(agent, "docs");
    assert.deepEqual(await lines(), ["docs got an overload error"]);
    await page.select(kind, "pauses");
    await says(page, ".recent", "No event of this choice.");
    // It stays while new events come.
    await own.run("throttle", "my/rate", "--as", "blog", "--kind", "overload");
    await page.select(kind, "");
    await snapshots(page, 4);
    assert.deepEqual(await lines(), ["docs got an overload error"]);
    assert.deepEqual(await findings(page), []);
    const stored = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]));
    assert.doesNotMatch(stored, /docs|refusals/);
  }, RATE);
});

test("the filter of events is bounded", async () => {
  await withHome(async (own) => {
    await own.up();
    const page = await visit(own);
    const [agents, lines, more] = await page.evaluate(async () => {
      const { Recent } = await import("/ui/recent.js");
      const at = new Date().toISOString();
      const events = Array.from({ length: 90 }, (_, key) => ({ key, pool: "my/a", at,
        kind: "throttle", agent: `agent-${key}`, about: "quota" }));
      const recent = new Recent();
      recent.update({ pool: "my/a", at }, { events, version: 1 });
      recent.more.click();
      return [recent.agent.options.length, recent.list.children.length, recent.older.textContent];
    });
    assert.deepEqual([agents, lines, more], [51, 40, "and 50 older ones: standpipe events"]);
  });
});

test("a wide screen has the limits beside the agents, and no over-long lines", async () => {
  await withHome(async (own) => {
    await used(own);
    const layout = (page) => page.evaluate(() => {
      const box = (css) => document.querySelector(css).getBoundingClientRect();
      const [agents, limits, answer] = [".agents", ".limited", ".answers dd"].map(box);
      return { isBeside: limits.top === agents.top && limits.left > agents.right,
        unused: innerWidth - box("main").right, answer: answer.width,
        sections: [...document.querySelectorAll("main section")].map((one) =>
          one.className.replace(" empty", "")) };
    });
    const narrow = await layout(await ready(await visit(own, { wide: 1280 })));
    assert.equal(narrow.isBeside, false);
    for (const wide of [1700, 1920, 2560]) {
      const page = await ready(await visit(own, { wide, high: 1200 }));
      const { isBeside, unused, answer, sections } = await layout(page);
      assert.ok(isBeside, `${wide}: ${sections}`);
      assert.ok(unused <= 20, `${unused} px of ${wide} are empty`);
      assert.ok(answer <= 75 * 15, `a line of ${answer} px`);
      assert.deepEqual(await findings(page), []);
      await screenshot(page, `wide-${wide}`);
      // The window becomes narrow: the same page, in the order of the small screen.
      await page.setViewport({ width: 1280, height: 900 });
      await page.waitForFunction(() => !document.querySelector(".split"));
      assert.deepEqual((await layout(page)).sections, narrow.sections);
    }
  }, RATE);
});

async function ready(page) {
  await says(page, ".burn .readout", "30 %");
  return page;
}

test("a queued call shows a forecast or a bound, and how many calls are ahead", async () => {
  await withHome(async (own) => {
    await own.up();
    const page = await visit(own);
    const texts = await page.evaluate(async () => {
      const { expected } = await import("/ui/words.js");
      const at = new Date(Date.now() + 60_000).toISOString();
      const bound = { not_before: at, not_before_ms: 13_000 };
      const event = { waiting_for: "the calls before it in the queue" };
      return [{ reason: "limit", position: 1, until: at, until_ms: 13_000 },
        { reason: "limit", position: 1, ...bound, expected: at, expected_ms: 14_000 },
        { reason: "order", position: 2, ...bound },
        { reason: "limit", position: 1, waiting_for: "a call in flight to end", or_later: true,
          expected: at, expected_ms: 14_000 },
        { reason: "order", position: 10, calls_ahead: 9, ...event },
        { reason: "order", position: 1, ...event }, { reason: null, position: 1 }]
        .map((ticket) => expected(ticket).replace(/\d\d:\d\d:\d\d/, "TIME"));
    });
    assert.deepEqual(texts, ["in 13 s (TIME)", "in 14 s (TIME)",
      "not before TIME (in 13 s); 1 call ahead",
      "when a call in flight ends, not before TIME (in 14 s)", "9 calls ahead",
      "when the calls before it in the queue are admitted", "now"]);
  });
});

test("a call that gives up before its turn is marked", async () => {
  await withHome(async (own) => {
    await own.up();
    const page = await visit(own);
    const late = await page.evaluate(async () => {
      const { Queue } = await import("/ui/queue.js");
      const ticket = { agent: "docs", position: 1, reason: "limit", limit: "requests per 1h",
        cost: { requests: 1 }, short_by: 1, since: new Date().toISOString(), waits_ms: 0,
        until: new Date().toISOString(), until_ms: 60_000 };
      const queue = new Queue();
      queue.update({ limits: [], agents: [], waiting: 2, tickets: [
        { ...ticket, deadline_ms: 30_000 },
        { ...ticket, agent: "blog", deadline_ms: 90_000 }] }, "");
      return [...queue.table.body.rows].map((row) => row.cells[7].textContent);
    });
    assert.deepEqual(late, ["in 30 s, before its turn", "in 1 min 30 s"]);
  }, RATE);
});

test("every reason has the words of the command line", async () => {
  await withHome(async (own) => {
    await own.up();
    const page = await visit(own);
    const source = readFileSync(new URL(
      "../../crates/standpipe-observe/src/refusal/why.rs", import.meta.url), "utf8")
      .split("#[cfg(test)]")[0].replace(/\\\n\s*/g, "");
    const reasons = [...source.matchAll(/"(\w+)"(?: if [\w.()]+)? => /g)].map(([, name]) => name);
    assert.ok(reasons.length > 20, reasons.join());
    const texts = await page.evaluate(async (names) => {
      const { reasonText } = await import("/ui/words.js");
      return names.flatMap((name) => [[name, reasonText(name, "{limit}", "{}")],
        [name, reasonText(name, null, "{}").replace("a limit", "{limit}")]]);
    }, reasons);
    for (let [name, words] of texts) {
      assert.notEqual(words, name);
      // Who is ahead, and what is missing, come from the snapshot.
      if (name === "order") continue;
      if (name === "never") words = words.replace("{} more than ", "{shortage}more than {cap}");
      assert.ok(source.includes(`"${words}`), `${name}: “${words}” is not in why.rs`);
    }
  });
});
