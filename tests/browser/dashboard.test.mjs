// The dashboard, seen by a real browser: the real daemon serves it, real commands fill its pools.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { Home, findings, launch, open, says, screenshot, snapshots, text, until }
  from "./support.mjs";
import { sameFigures } from "./figures.mjs";

const HOSTILE = "<img src=x onerror=alert(1)>\u202e\u200b";
const HOSTILE_SHOWN = "<img src=x onerror=alert(1)>\\u{202e}\\u{200b}";
const LARGEST = 64 * 1024;

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

let browser;
let home;
let page;
const pages = [];

async function visit(at = home, options) {
  page = await open(browser, at.url ?? at, options);
  pages.push(page);
  return page;
}

/** The row of an agent in a list. */
async function row(of, list, agent) {
  const found = await of.evaluateHandle((css, name) => [...document.querySelectorAll(
    `${css} tbody tr`)].find((one) => one.querySelector(".name")?.textContent === name), list, agent);
  return found.asElement();
}

before(async () => {
  browser = await launch();
  home = new Home(CONFIG);
  await home.up();
});

after(async () => {
  await browser?.close();
  await home?.end();
});

afterEach(leave);

/** Closes all pages; nothing may have gone wrong in any. */
async function leave() {
  const wrong = pages.flatMap((one) => one.wrong);
  for (const one of pages.splice(0)) await one.close();
  assert.deepEqual(wrong, []);
}

/** With a daemon that is this test's alone. */
async function withHome(run) {
  const own = new Home();
  try {
    await run(own);
    await leave();
  } finally {
    await own.end();
  }
}

test("without pools it says what to do next, and shows the first as it comes", async () => {
  await withHome(async (empty) => {
    await empty.up();
    await visit(empty);
    await says(page, "#empty", "No pools yet");
    await says(page, "#empty", `curl ${empty.url}/v1/leases`);
    assert.deepEqual(await findings(page), []);
    await screenshot(page, "empty");
    // The page's own example makes the pool.
    const example = await text(page, "#curl");
    assert.doesNotMatch(example, /\\|\n/, "it is one line that a shell takes as it is");
    const body = /-d '(.*)'/s.exec(example)[1];
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${empty.url}/v1/leases`, { method: "POST", headers, body });
    assert.equal(answer.status, 201);
    await says(page, "main h2", "my/slots");
    await says(page, ".limits", "1 left");
  });
});

test("a pool fills before one's eyes", async () => {
  await visit(`${home.url}/#pool=fill%2Fslots`);
  home.hold("fill/slots", "--limit", "parallel=2", "--as", "one");
  await says(page, "main h2", "fill/slots");
  await says(page, ".limits", "1 left");
  home.hold("fill/slots", "--limit", "parallel=2", "--as", "two");
  await says(page, ".limits", "full");
  await says(page, ".answers", "parallel is full, no call waits. In use by one (1 slot), two (1 slot).");
  // A full pool for which no call waits is normal use: calm, and without advice.
  await says(page, ".pill.ok", "full");
  assert.doesNotMatch(await text(page, ".answers"), /\bDo\b/);
  const meter = await page.$eval("[role=meter]", (one) => one.getAttribute("aria-valuetext"));
  assert.equal(meter, "0 used, 2 held, of 2");
  home.hold("fill/slots", "--limit", "parallel=2", "--as", "three");
  await says(page, ".waiting", "waiting for a call in flight to end");
  await screenshot(page, "full");
});

test("who waits is shown with place, reason, countdown and deadline", async () => {
  for (const agent of ["boss", "data", "poller"]) {
    home.hold("work/rate", "--as", agent, "--cost", "tokens=1000");
  }
  await until("three hold", async () => (await home.status("work/rate")).in_flight === 3);
  home.start("reserve", "work/rate", "--as", "large", "--cost", "tokens=7200",
    "--timeout", "2h", "--model", HOSTILE);
  await until("large waits", async () => (await home.status("work/rate")).waiting === 1);
  home.hold("work/rate", "--as", "later", "--cost", "tokens=2000", "--timeout", "2h");
  await visit(`${home.url}/#pool=work%2Frate`);
  await says(page, ".waiting", "2 later");
  const cells = async (agent) => (await row(page, ".waiting", agent)).$$eval("th, td", (all) =>
    all.map((one) => one.innerText));
  const first = await cells("large");
  assert.equal(first[0], "1");
  // 7,000 are left, of which the boss's floor keeps 1,500.
  assert.equal(first[2], "tokens per hour has no room, short by 1,700; 1,500 kept for boss "
    + "(floor 25%); used by boss 10 %, data 10 %, poller 10 %");
  // A floor may keep units for longer, so the instant is a bound.
  assert.match(first[3], /^not before \d\d:\d\d:\d\d \(in (1 h|59 min.*)\)$/);
  assert.match((await cells("later"))[2], /^behind large for tokens per hour/);
  // It counts down.
  await page.waitForFunction((was) => [...document.querySelectorAll(".waiting tr")].some((one) =>
    one.querySelector(".name")?.textContent === "large" && one.cells[3].innerText !== was),
  {}, first[3]);
});

test("what is hostile is shown as text", async () => {
  await visit(`${home.url}/#pool=work%2Frate`);
  await says(page, ".listing small", HOSTILE_SHOWN);
  assert.equal(await page.$("main img"), null);
});

test("every figure is the snapshot's", async () => {
  await visit(`${home.url}/#pool=work%2Frate`);
  await says(page, ".waiting", "2 later");
  await page.click("#freeze");
  await says(page, "#link", "frozen at");
  await says(page, "#freeze", "Resume view");
  assert.deepEqual(await findings(page), [], "the button is readable under the pointer");
  await sameFigures(page, "work/rate");
  // And what does not move by itself is what the daemon says to anybody.
  const { pools } = await (await fetch(`${home.url}/v1/pools`)).json();
  const said = pools.find(({ pool }) => pool === "work/rate");
  const seen = await page.evaluate(async () => (await import("/ui/app.js")).shown().pools.find(
    ({ pool }) => pool === "work/rate"));
  const still = ({ limits, leases, tickets, in_flight, waiting, zone, origin }) => ({ zone, origin,
    in_flight, waiting, limits: limits.map(({ used, held, left, effective, amount }) =>
      ({ used, held, left, effective, amount })), leases: leases.map(({ id, cost }) =>
      ({ id, cost })), tickets: tickets.map(({ agent, position, reason, short_by }) =>
      ({ agent, position, reason, short_by })) });
  assert.deepEqual(still(seen), still(said));
  await page.click("#freeze");
  await says(page, "#link", "live");
});

test("the use of the limits is drawn and described", async () => {
  await visit(`${home.url}/#pool=work%2Frate`);
  await page.waitForSelector(".burn path.line");
  const label = await page.$eval(".burn svg", (svg) => svg.getAttribute("aria-label"));
  assert.match(label, /requests per hour: now 75 %, highest 75 %/);
  // Two rates, each drawn and in the legend; slots have a drawing of their own.
  assert.equal((await page.$$(".burn path.line")).length, 2 * 2);
  const slots = await page.$eval(".inflight svg", (svg) => svg.getAttribute("aria-label"));
  assert.match(slots, /now 3 of 10, at most 3/);
  await page.click(".burn summary");
  await says(page, ".burn table", "3 (75 %)");
});

test("a pause by the keyboard alone, with a countdown, and resumed by the button", async () => {
  await visit(`${home.url}/#pool=work%2Frate`);
  await says(page, "main h2", "work/rate");
  const reach = async (wanted) => {
    for (let n = 0; n < 40; n += 1) {
      await page.keyboard.press("Tab");
      if (await page.evaluate((words) => document.activeElement.innerText === words, wanted)) {
        return;
      }
    }
    assert.fail(`${wanted} is not to be reached with Tab`);
  };
  await reach("Pause…");
  await page.keyboard.press("Enter");
  await says(page, "dialog", "No call on this pool is admitted");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "SELECT");
  // Snapshots go on behind the question; it stays, and so does the focus.
  await snapshots(page, 2);
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "SELECT");
  assert.deepEqual(await findings(page), []);
  await page.keyboard.press("ArrowDown");
  await reach("Pause it");
  await page.keyboard.press("Enter");
  await says(page, "#announced", "work/rate is paused for 5 min");
  await says(page, ".answers", "No call is admitted");
  const left = await text(page, ".answers");
  await page.waitForFunction((was) => document.querySelector(".answers").innerText !== was,
    {}, left);
  const { pause } = await home.status("work/rate");
  assert.ok(pause.for_ms > 200_000, String(pause.for_ms));
  await says(page, ".waiting", "paused by dashboard at");
  await screenshot(page, "paused");
  await page.click("button ::-p-text(Resume)");
  await says(page, "#announced", "admits calls again");
  await until("it is resumed", async () => (await home.status("work/rate")).pause === null);
  await page.waitForFunction(() => !document.querySelector(".pill").innerText.includes("paused"));
});

test("a lease is settled by the button, and the focus stays in the list", async () => {
  const id = await home.run("reserve", "my/settled", "--limit", "parallel=3", "--as", "stuck");
  await home.run("reserve", "my/settled", "--limit", "parallel=3", "--as", "kept");
  await visit(`${home.url}/#pool=my%2Fsettled`);
  await says(page, "main h2", "my/settled");
  await page.waitForFunction(() => document.querySelectorAll(".act button").length === 2);
  await (await (await row(page, ".flying", "stuck")).$("button")).click();
  await says(page, "dialog", "Settle this lease?");
  await says(page, "dialog", "stuck");
  await screenshot(page, "settle");
  await page.click("#ask-no");
  assert.equal((await home.status("my/settled")).in_flight, 2);
  await (await (await row(page, ".flying", "stuck")).$("button")).click();
  await page.click("#ask-yes");
  await says(page, "#announced", "The lease of stuck is settled.");
  const { leases } = await home.status("my/settled");
  assert.deepEqual(leases.filter((lease) => lease.id === id), []);
  assert.equal(leases.length, 1);
  await page.waitForFunction(() => document.querySelectorAll(".act button").length === 1);
  await page.waitForFunction(() => document.activeElement.textContent === "In flight");
});

test("what cannot be done is said with its reason and a hint", async () => {
  const id = await home.run("reserve", "my/settled", "--limit", "parallel=3", "--as", "quick");
  await visit(`${home.url}/#pool=my%2Fsettled`);
  await says(page, ".listing", "quick");
  await (await (await row(page, ".flying", "quick")).$("button")).click();
  await home.run("commit", id);
  page.expectsErrors = true; // The refusal is expected.
  await page.click("#ask-yes");
  await says(page, "#wrong", "The lease was not settled:");
  const [said, hint] = await page.$eval("#wrong p", (one) => [one.innerText,
    one.querySelector("span").innerText]);
  assert.ok(said.length > "The lease was not settled: ".length + hint.length, said);
  assert.notEqual(hint, "");
  await page.click("#wrong button");
  await page.waitForSelector("#wrong[hidden]");
});

test("refusals are counted by agent and kind, and the pause says why", async () => {
  await home.run("throttle", "work/shadow", "--as", "data", "--kind", "quota",
    "--retry-after", "5min");
  await home.run("throttle", "work/shadow", "--as", "data", "--kind", "overload");
  await home.run("throttle", "work/shadow", "--as", "boss", "--kind", "quota");
  await visit(`${home.url}/#pool=work%2Fshadow`);
  await says(page, ".pill", "shadow mode");
  await says(page, ".answers", "Calls are counted and never delayed. Enforced, the pool would be "
    + "paused.");
  await says(page, ".refusals p", "3 refusals of 2 agents.");
  const cells = await page.$$eval(".refusals tbody tr", (rows) => rows.map((one) =>
    [...one.cells].slice(0, 6).map((cell) => cell.innerText)));
  assert.deepEqual(cells.sort(), [["boss", "1", "–", "–", "–", "–"],
    ["data", "1", "–", "–", "1", "–"]]);
  await says(page, ".events", "data got a 429 (quota), retry after 5 min");
});

test("long lists are cut, and say so", async () => {
  const post = async (n) => {
    const body = { pool: "many/slots", agent: `agent-${n}`, limits: { parallel: 1_000 } };
    const answer = await fetch(`${home.url}/v1/leases`, { method: "POST",
      headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    assert.equal(answer.status, 201);
  };
  for (let n = 0; n < 230; n += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, of) => post(n + of)));
  }
  await visit(`${home.url}/#pool=many%2Fslots`);
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

test("light, dark, and a switch that is remembered", async () => {
  const ground = (of) => of.evaluate(() => getComputedStyle(document.documentElement)
    .backgroundColor);
  await visit(`${home.url}/#pool=work%2Frate`);
  await says(page, "main h2", "work/rate");
  const light = await ground(page);
  await page.select("#theme", "dark");
  const dark = await ground(page);
  assert.notEqual(dark, light);
  await page.reload();
  await says(page, "main h2", "work/rate");
  assert.equal(await ground(page), dark);
  await page.select("#theme", "auto");
  assert.equal(await ground(page), light);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  assert.equal(await ground(page), dark);
});

for (const scheme of ["light", "dark"]) {
  test(`axe finds nothing serious when it is ${scheme}`, async () => {
    await visit(`${home.url}/#pool=work%2Frate`, { scheme });
    await says(page, "main h2", "work/rate");
    await says(page, ".refusals p", "None");
    assert.deepEqual(await findings(page), []);
    for (const width of [1280, 768, 360]) {
      await page.setViewport({ width, height: 900 });
      await snapshots(page, 1);
      await screenshot(page, `pool-${width}-${scheme}`);
    }
    assert.deepEqual(await findings(page), []);
  });
}

test("on a phone nothing scrolls sideways", async () => {
  await visit(`${home.url}/#pool=work%2Frate`, { wide: 360 });
  for (const pool of ["work/rate", "work/shadow", "my/settled", "many/slots"]) {
    await page.evaluate((name) => { location.hash = `#pool=${encodeURIComponent(name)}`; }, pool);
    await says(page, "main h2", pool);
    const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth,
      innerWidth]);
    assert.equal(content, screen, pool);
  }
});

test("on a phone many pools are listed by what needs attention", async () => {
  await withHome(async (own) => {
    await own.up();
    const reserve = (pool, parallel) => own.reserve({ pool, limits: { parallel } });
    for (const name of ["a", "b", "c", "d", "e"]) await reserve(`my/${name}`, 2);
    await reserve("my/10", 1);
    await reserve("my/2", 1);
    await own.run("pause", "my/e", "--for", "30min", "--as", "ops");
    await visit(`${own.url}/#pool=my%2Fd`, { wide: 390, high: 844, isPhone: true });
    const listed = () => page.$$eval("#rail li", (all) => all.filter((one) =>
      one.checkVisibility()).map((one) => one.querySelector(".name").innerText));
    await says(page, "#others", "Show all 7 pools");
    // The paused one, two in natural order, and the one that is looked at.
    assert.deepEqual(await listed(), ["my/e", "my/2", "my/10", "my/d"]);
    await page.click("#others");
    await says(page, "#others", "Show fewer pools");
    assert.equal((await listed()).length, 7);
    const small = await page.$$eval("button, select, #rail a", (all) => all.filter((one) =>
      one.checkVisibility() && one.getBoundingClientRect().height < 44).map((one) => one.innerText));
    assert.deepEqual(small, [], "a finger reaches every control");
  });
});

test("on a phone a few pools in trouble are listed, and how many more there are", async () => {
  await withHome(async (own) => {
    await own.up();
    for (const name of ["a", "b", "c", "d", "e", "f", "g"]) {
      await own.reserve({ pool: `my/${name}`, limits: { parallel: 2 } });
      await own.run("pause", `my/${name}`, "--for", "30min", "--as", "ops");
    }
    await visit(`${own.url}/#pool=my%2Fg`, { wide: 390, high: 844, isPhone: true });
    await says(page, "#others", "Show all 7 pools, 1 more needs attention");
    const listed = await page.$$eval("#rail li", (all) => all.filter((one) => one.checkVisibility())
      .map((one) => one.querySelector(".name").innerText));
    assert.deepEqual(listed, ["my/a", "my/b", "my/c", "my/d", "my/e", "my/g"]);
  });
});

test("many pools do not lengthen the page", async () => {
  await withHome(async (own) => {
    await own.up();
    for (let n = 1; n <= 30; n += 1) await own.reserve({ pool: `team${n}/api`, limits: { parallel: 2 } });
    await visit(own, { wide: 1280, high: 720 });
    await page.waitForFunction(() => document.querySelectorAll("#rail li").length === 30);
    const [list, screen] = await page.$eval("nav", (one) => [one.offsetHeight, innerHeight]);
    assert.ok(list <= screen, `the list has ${list} of ${screen} px`);
    await page.waitForFunction(() => document.querySelectorAll(".many .calm").length === 30);
  });
});

test("long names without a break stay on the screen", async () => {
  await withHome(async (own) => {
    await own.up();
    const [pool, agent] = [`provider/${"scope-".repeat(12)}`, "x".repeat(64)];
    await own.reserve({ pool, agent, limits: { parallel: 1 } });
    own.queue({ pool, agent: "docs", limits: { parallel: 1 } });
    for (const wide of [1280, 1024, 900, 640, 320]) {
      await visit(own, { wide });
      await says(page, ".waiting tbody tr", `in use by ${agent}`);
      const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth,
        document.documentElement.clientWidth]);
      assert.ok(content <= screen, `${content} px of content on ${screen} px`);
    }
  });
});

test("caps, floors and calls ahead are named as in the snapshot", async () => {
  await visit(home);
  const texts = await page.evaluate(async () => {
    const { summary } = await import("/ui/diagnosis.js");
    const limit = "requests per 1h";
    const kept = [{ limit, unit: "requests", agent: "release", units: 2 }];
    const agents = [{ name: "data", floor: [], cap: ["requests 3/h"] },
      { name: "idle", floor: ["50%"], cap: [] }];
    const limits = [{ limit, kind: "window", unit: "requests", used: 6, held: 0, left: 4,
      effective: 10, kept }];
    const of = (ticket) => summary({ enforce: true, waiting: 1, agents, limits, tickets: [{ limit,
      agent: "data", position: 9, cost: { requests: 4 }, short_by: 0, ...ticket }] }, { paused: "" });
    return [of({ reason: "cap", short_by: 1 }), of({ reason: "floor", short_by: 2, kept }),
      of({ reason: "order", ahead: ["blog", "data"], ahead_more: 3 }),
      of({ reason: "order", behind: "blog" }), of({ reason: "limit", alone: true })]
      .map(([now, , advice]) => [now, advice]);
  });
  assert.deepEqual(texts.slice(0, 2), [
    ["data waits: its own cap on requests per hour is reached (requests 3/h), short by 1.",
      "Wait, or raise the cap of data in standpipe.toml."],
    ["data waits: the rest of requests per hour is kept for release (2), short by 2.",
      "Wait, give data a floor too, or lower the floor of release."]]);
  assert.deepEqual(texts.slice(2).map(([now]) => now), [
    "data waits: behind blog, its own waiting call and 3 more for requests per hour.",
    "data waits: behind blog by fair order for requests per hour.",
    "data waits: it needs more than is usable of requests per hour, so it waits until all of it is "
      + "free."]);
});

test("waits in a row are one event, and do not hide a refusal", async () => {
  await visit(home);
  const lines = await page.evaluate(async () => {
    const { Recent } = await import("/ui/pool.js");
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
  assert.match(lines[0], /^60 calls of (docs and blog|blog and docs) waited until .*, the longest 1\.1 s$/);
  assert.equal(lines[1], "docs got a 429 (quota)");
});

test("many pools are filtered by the name of a pool or an agent", async () => {
  await withHome(async (own) => {
    await own.up();
    for (let n = 1; n <= 9; n += 1) {
      await own.reserve({ pool: `team${n}/api`, agent: `agent-${n}`, limits: { parallel: 2 } });
    }
    await visit(own);
    const listed = () => page.$$eval("#rail .name", (all) => all.map((one) => one.innerText));
    await page.waitForFunction(() => document.querySelectorAll("#rail li").length === 9);
    await page.type("#filter", "Agent-7");
    assert.deepEqual(await listed(), ["team7/api"]);
    await page.type("#filter", "x");
    await says(page, "#nothing", "No pool or agent");
  });
});

test("the page is small", async () => {
  await visit(home);
  await says(page, "main", "Limits");
  const sizes = await page.evaluate(() => [...performance.getEntriesByType("navigation"),
    ...performance.getEntriesByType("resource")].filter(({ name }) => !name.includes("/v1/"))
    .map(({ name, encodedBodySize }) => [new URL(name).pathname, encodedBodySize]));
  const all = sizes.reduce((sum, [, size]) => sum + size, 0);
  assert.ok(sizes.length > 5 && sizes.every(([, size]) => size > 0), JSON.stringify(sizes));
  assert.ok(all < LARGEST, `${all} bytes: ${JSON.stringify(sizes)}`);
});

test("a daemon that dies is shown, and found again", async () => {
  await withHome(async (own) => {
    await own.up();
    await own.run("reserve", "my/slots", "--limit", "parallel=2", "--as", "one");
    await visit(own);
    await says(page, ".limits", "1 left");
    page.expectsErrors = true;
    await own.killDaemon();
    await says(page, "#gone", "The daemon has not answered since");
    await says(page, "#gone", "The figures below are from then.");
    await says(page, ".limits", "1 left");
    await page.waitForFunction(() => document.title === "(not connected) Standpipe");
    assert.equal(await page.$eval(".act button", (one) => one.disabled), true);
    const filter = await page.$eval(".page", (one) => getComputedStyle(one).filter);
    assert.match(filter, /grayscale/);
    await screenshot(page, "gone");
    await own.up();
    await says(page, "#announced", "The daemon answers again.");
    await page.waitForSelector("#gone[hidden]");
    assert.equal(await page.$eval(".act button", (one) => one.disabled), false);
    page.expectsErrors = false;
    await own.run("reserve", "my/slots", "--limit", "parallel=2", "--as", "two");
    await says(page, ".limits", "full");
  });
});

test("a token is asked for, kept in the tab, and taken out of the address", async () => {
  const token = "a-token-of-the-browser-tests";
  await withHome(async (own) => {
    const file = own.write("token", `${token}\n`);
    own.write("standpipe.toml", `open_pools = true\n[server]\ntoken_file = "${file}"\n`);
    await own.up();
    await own.run("reserve", "my/slots", "--limit", "parallel=2");
    await visit(own);
    page.expectsErrors = true; // The 401s are expected.
    await says(page, "#locked", "This daemon requires a token");
    assert.deepEqual(await findings(page), []);
    await screenshot(page, "token");
    await page.type("#token", "another-token-altogether");
    await page.keyboard.press("Enter");
    await says(page, "#denied", "rejects this token");
    await page.type("#token", token);
    await page.keyboard.press("Enter");
    await says(page, ".limits", "1 left");
    await page.reload();
    await says(page, ".limits", "1 left");
    pages[0].wrong.length = 0;
    await visit(`${own.url}/#token=${token}`);
    await says(page, ".limits", "1 left");
    assert.equal(await page.evaluate(() => location.href), `${own.url}/`);
  });
});
