// Many pools, long lists, long names and small screens; and the texts that depend on the snapshot
// alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { scene, visit, withHome } from "./scene.mjs";
import { Stage, lease, pause, pool, slots, ticket } from "./stage.mjs";
import { findings, says, snapshots } from "./support.mjs";

test("long lists are cut, and say so", async () => {
  const post = async (n) => {
    const body = { pool: "many/slots", agent: `agent-${n}`, limits: { parallel: 1_000 } };
    const answer = await fetch(`${scene.home.url}/v1/leases`, { method: "POST",
      headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    assert.equal(answer.status, 201);
  };
  for (let n = 0; n < 230; n += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, of) => post(n + of)));
  }
  const page = await visit(`${scene.home.url}/#pool=many%2Fslots`);
  for (const list of [".flying", ".agents"]) {
    await says(page, `${list} > button`, "Show all 200");
    await page.click(`${list} > button`);
  }
  await says(page, ".more", "and 30 more");
  assert.equal((await page.$$(".act button")).length, 200);
  await says(page, ".limits", "770 left");
  await says(page, ".more", "there may be more");
  await snapshots(page, 2);
});

test("on a small screen the head names the pool, and opens the list", async () => {
  const stage = await new Stage().up();
  const tickets = [ticket("docs", 1, { limit: "parallel", waiting_for: "a call in flight to end" })];
  stage.set([pool("my/a", { limits: [slots(2, 1)], leases: [lease("a", "blog")] }),
    pool("my/10", { limits: [slots(1, 1)], tickets }), pool("my/2", { limits: [slots(1, 1)], tickets }),
    pool("my/e", { limits: [slots(2, 0)], pause: pause(600_000) })]);
  for (const [wide, high, isPhone] of [[390, 844, true], [720, 450, false]]) {
    const page = await visit(`${stage.url}/#pool=my%2Fa`, { wide, high, isPhone });
    await says(page, "#switch", "my/a active +3 need attention");
    // The answer stands at the top, whatever the number of pools.
    const top = await page.$eval(".answers", (one) => one.getBoundingClientRect().top);
    assert.ok(top < 120, `Now begins at ${top} px`);
    assert.equal(await page.$eval("nav", (one) => one.checkVisibility()), false);
    await page.click("#switch");
    const listed = () => page.$$eval("#rail li", (all) => all.filter((one) =>
      one.checkVisibility()).map((one) => one.querySelector(".name").innerText));
    // Two on which calls wait in natural order, the paused one without calls, the busy one.
    assert.deepEqual(await listed(), ["my/2", "my/10", "my/e", "my/a"]);
    if (isPhone) {
      const small = await page.$$eval("button, select, #rail a", (all) => all.filter((one) =>
        one.checkVisibility() && one.getBoundingClientRect().height < 44)
        .map((one) => one.innerText));
      assert.deepEqual(small, [], "a finger reaches every control");
    }
    assert.deepEqual(await findings(page), []);
    await page.keyboard.press("Escape");
    assert.deepEqual(await listed(), []);
    await page.click("#switch");
    await (await page.$("#rail a")).click();
    await says(page, "main h2", "my/2");
    assert.deepEqual(await listed(), [], "a choice closes the list");
    page.expectsErrors = true;
  }
  await stage.down();
});

test("many pools do not lengthen the page", async () => {
  await withHome(async (own) => {
    await own.up();
    for (let n = 1; n <= 30; n += 1) {
      await own.reserve({ pool: `team${n}/api`, limits: { parallel: 2 } });
    }
    const page = await visit(own, { wide: 1280, high: 720 });
    await page.waitForFunction(() => document.querySelectorAll("#rail li").length === 30);
    const [list, screen] = await page.$eval("nav", (one) => [one.offsetHeight, innerHeight]);
    assert.ok(list <= screen, `the list has ${list} of ${screen} px`);
    const heights = await page.$$eval("#rail li", (all) => all.map((one) => one.offsetHeight));
    assert.equal(new Set(heights).size, 1, "every row has one height");
  });
});

test("long names without a break stay on the screen", async () => {
  await withHome(async (own) => {
    await own.up();
    const [pool, agent] = [`provider/${"scope-".repeat(12)}`, "x".repeat(64)];
    await own.reserve({ pool, agent, limits: { parallel: 1 } });
    own.queue({ pool, agent: "docs", limits: { parallel: 1 } });
    for (const wide of [1280, 1024, 900, 640, 320]) {
      const page = await visit(own, { wide });
      await says(page, ".waiting tbody tr", `in use by ${agent}`);
      const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth,
        document.documentElement.clientWidth]);
      assert.ok(content <= screen, `${content} px of content on ${screen} px`);
    }
  });
});

test("caps, floors and calls ahead are named as in the snapshot", async () => {
  const page = await visit(scene.home);
  const texts = await page.evaluate(async () => {
    const { summary } = await import("/ui/diagnosis.js");
    const limit = "requests per 1h";
    const kept = [{ limit, unit: "requests", agent: "release", units: 2 }];
    const agents = [{ name: "data", floor: [], cap: ["requests 3/h"] },
      { name: "idle", floor: ["50%"], cap: [] }];
    const limits = [{ limit, kind: "window", unit: "requests", used: 6, held: 0, left: 4,
      effective: 10, kept }];
    const of = (ticket) => summary({ enforce: true, waiting: 1, agents, limits, tickets: [{ limit,
      agent: "data", position: 9, cost: { requests: 4 }, short_by: 0, ...ticket }] },
    { paused: "" });
    return [of({ reason: "cap", short_by: 1 }), of({ reason: "floor", short_by: 2, kept }),
      of({ reason: "order", ahead: ["blog", "data"], ahead_more: 3, calls_ahead: 8 }),
      of({ reason: "order", behind: "blog" }), of({ reason: "limit", alone: true })]
      .map(([now, , advice]) => [now, advice]);
  });
  assert.deepEqual(texts.slice(0, 2), [
    ["data waits: the agent's own cap on requests per hour is reached (short by 1): cap "
      + "requests 3/h.", "Wait, or raise cap of data in standpipe.toml."],
    ["data waits: the rest of requests per hour is kept: 2 for the floor of release.",
      "Wait, or give data a floor too, in standpipe.toml."]]);
  assert.deepEqual(texts.slice(2).map(([now]) => now), [
    "data waits: behind 8 calls (blog, its own and 3 more agents) in the queue for requests "
      + "per hour.",
    "data waits: behind blog by fair order for requests per hour.",
    "data waits: it takes more than the usable part of requests per hour, so it waits until "
      + "nothing else is charged there."]);
});

test("waits in a row are one event, and do not hide a refusal", async () => {
  const page = await visit(scene.home);
  const lines = await page.evaluate(async () => {
    const { Recent } = await import("/ui/recent.js");
    const at = new Date().toISOString();
    const wait = (n) => ({ key: n, pool: "my/a", kind: "wait", at, agent: n % 2 ? "blog" : "docs",
      count: 1, waited_ms: 1_000 + n, reason: "limit", limit: "parallel", ended: "admitted" });
    const refusal = { key: 0, pool: "my/a", kind: "throttle", at, agent: "docs", about: "quota" };
    const events = [refusal, ...Array.from({ length: 60 }, (_, n) => wait(n + 1))];
    const recent = new Recent();
    recent.update({ pool: "my/a", at }, { events, version: 1 });
    return [...recent.list.children].map((one) => one.lastChild.textContent);
  });
  assert.equal(lines.length, 2);
  assert.match(lines[0],
    /^60 calls of (docs and blog|blog and docs) waited until .*, the longest 1\.1 s$/);
  assert.equal(lines[1], "docs got a 429 (quota)");
});

test("many pools are filtered by the name of a pool or an agent", async () => {
  await withHome(async (own) => {
    await own.up();
    for (let n = 1; n <= 9; n += 1) {
      await own.reserve({ pool: `team${n}/api`, agent: `agent-${n}`, limits: { parallel: 2 } });
    }
    const page = await visit(own);
    const listed = () => page.$$eval("#rail .name", (all) => all.map((one) => one.innerText));
    await page.waitForFunction(() => document.querySelectorAll("#rail li").length === 9);
    await page.type("#filter", "Agent-7");
    assert.deepEqual(await listed(), ["team7/api"]);
    await page.type("#filter", "x");
    await says(page, "#nothing", "No pool or agent");
  });
});

