// The dashboard, seen by a real browser: the real daemon serves it, real commands fill its pools.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sameFigures } from "./figures.mjs";
import "./many.mjs";
import "./reading.mjs";
import "./facts.mjs";
import "./calm.mjs";
import "./outage.mjs";
import "./turned.mjs";
import "./phone.mjs";
import { row, scene, visit, withHome } from "./scene.mjs";
import { Stage, lease, pool, slots } from "./stage.mjs";
import { findings, says, screenshot, snapshots, text, until } from "./support.mjs";

const HOSTILE = "<img src=x onerror=alert(1)>\u202e\u200b";
const HOSTILE_SHOWN = "<img src=x onerror=alert(1)>\\u{202e}\\u{200b}";
const LARGEST = 64 * 1024;

test("without pools it says what to do next, and shows the first as it comes", async () => {
  await withHome(async (empty) => {
    await empty.up();
    const page = await visit(empty);
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
  const page = await visit(`${scene.home.url}/#pool=fill%2Fslots`);
  scene.home.hold("fill/slots", "--limit", "parallel=2", "--as", "one");
  await says(page, "main h2", "fill/slots");
  await says(page, ".limits", "1 left");
  scene.home.hold("fill/slots", "--limit", "parallel=2", "--as", "two");
  await says(page, ".limits", "full");
  await says(page, ".answers", "parallel is full, no call waits. In use by one (1 slot), two (1 "
    + "slot).");
  // A full pool for which no call waits is amber, and without advice.
  await says(page, ".pill.warn", "full");
  assert.doesNotMatch(await text(page, ".answers"), /\bDo\b/);
  const meter = await page.$eval("[role=meter]", (one) => one.getAttribute("aria-valuetext"));
  assert.equal(meter, "2 of 2 in flight, full");
  scene.home.hold("fill/slots", "--limit", "parallel=2", "--as", "three");
  await says(page, ".waiting", "when a call in flight ends");
  await screenshot(page, "full");
});

test("who waits is shown with place, reason, countdown and deadline", async () => {
  for (const agent of ["boss", "data", "poller"]) {
    scene.home.hold("work/rate", "--as", agent, "--cost", "tokens=1000");
  }
  await until("three hold", async () => (await scene.home.status("work/rate")).in_flight === 3);
  scene.home.start("reserve", "work/rate", "--as", "large", "--cost", "tokens=7200",
    "--timeout", "2h", "--model", HOSTILE);
  await until("large waits", async () => (await scene.home.status("work/rate")).waiting === 1);
  scene.home.hold("work/rate", "--as", "later", "--cost", "tokens=2000", "--timeout", "2h");
  const page = await visit(`${scene.home.url}/#pool=work%2Frate`);
  await says(page, ".waiting", "2 later");
  const cells = async (agent) => (await row(page, ".waiting", agent)).$$eval("th, td", (all) =>
    all.map((one) => (one.querySelector(".why") ?? one).innerText));
  const first = await cells("large");
  assert.equal(first[0], "1");
  // 7,000 are left, of which the boss's floor keeps 1,500.
  assert.equal(first[2], "tokens per hour has no room (short by 1,700); 1,500 kept for boss "
    + "(floor 25%); used by boss 10 %, data 10 %, poller 10 %");
  // A floor may keep units for longer, so the instant is a bound.
  assert.match(first[4], /^≥ \d\d:\d\d:\d\d \(in (1 h|59 min.*)\)$/);
  assert.match((await cells("later"))[2], /^behind large in the queue for tokens per hour/);
  // It counts down.
  await page.waitForFunction((was) => [...document.querySelectorAll(".waiting tr")].some((one) =>
    one.querySelector(".name")?.textContent === "large" && one.cells[4].innerText !== was),
  {}, first[4]);
});

test("what is hostile is shown as text", async () => {
  const page = await visit(`${scene.home.url}/#pool=work%2Frate`);
  await says(page, ".listing small", HOSTILE_SHOWN);
  assert.equal(await page.$("main img"), null);
});

test("every figure is the snapshot's", async () => {
  const page = await visit(`${scene.home.url}/#pool=work%2Frate`);
  await says(page, ".waiting", "2 later");
  await page.click("#freeze");
  await says(page, "#link", "frozen at");
  await says(page, "#freeze", "Go live");
  assert.deepEqual(await findings(page), [], "the button is readable under the pointer");
  await sameFigures(page, "work/rate");
  // And what does not move by itself is what the daemon says to anybody.
  const { pools } = await (await fetch(`${scene.home.url}/v1/pools`)).json();
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
  const page = await visit(`${scene.home.url}/#pool=work%2Frate`);
  await page.waitForSelector(".burn svg.plot[aria-label]");
  const label = await page.$eval(".burn svg.plot", (svg) => svg.getAttribute("aria-label"));
  assert.match(label, /requests per hour: now 75 %, highest 75 %/);
  // Two rates, each drawn and in the legend; slots have a drawing of their own.
  assert.equal((await page.$$(".burn path.line")).length, 2 * 2);
  const slots = await page.$eval(".inflight svg.plot", (svg) => svg.getAttribute("aria-label"));
  assert.match(slots, /now 3 of 10, at most 3/);
  await page.click(".burn summary");
  await says(page, ".burn table", "3 (75 %)");
});

test("a pause by the keyboard alone, with a countdown, and resumed by the button", async () => {
  const page = await visit(`${scene.home.url}/#pool=work%2Frate`);
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
  await says(page, "#reader", "work/rate is paused for 5 min");
  await says(page, ".answers", "No call is admitted");
  const left = await text(page, ".answers");
  await page.waitForFunction((was) => document.querySelector(".answers").innerText !== was,
    {}, left);
  const { pause } = await scene.home.status("work/rate");
  assert.ok(pause.for_ms > 200_000, String(pause.for_ms));
  await says(page, ".waiting", "by dashboard at");
  await screenshot(page, "paused");
  await page.click("button ::-p-text(Resume)");
  await says(page, "#reader", "admits calls again");
  await until("it is resumed", async () => (await scene.home.status("work/rate")).pause === null);
  await page.waitForFunction(() => !document.querySelector(".pill").innerText.includes("paused"));
});

test("a lease is settled by the button, and the focus stays in the list", async () => {
  const id = await scene.home.run("reserve", "my/settled", "--limit", "parallel=3", "--as",
    "stuck");
  await scene.home.run("reserve", "my/settled", "--limit", "parallel=3", "--as", "kept");
  const page = await visit(`${scene.home.url}/#pool=my%2Fsettled`);
  await says(page, "main h2", "my/settled");
  await page.waitForFunction(() => document.querySelectorAll(".act button").length === 2);
  await (await (await row(page, ".flying", "stuck")).$("button")).click();
  await says(page, "dialog", "Settle stuck’s lease on my/settled?");
  await says(page, "dialog", "stuck");
  await screenshot(page, "settle");
  await page.click("#ask-no");
  assert.equal((await scene.home.status("my/settled")).in_flight, 2);
  await (await (await row(page, ".flying", "stuck")).$("button")).click();
  await page.click("#ask-yes");
  await says(page, "#reader", "The lease of stuck is settled.");
  const { leases } = await scene.home.status("my/settled");
  assert.deepEqual(leases.filter((lease) => lease.id === id), []);
  assert.equal(leases.length, 1);
  await page.waitForFunction(() => document.querySelectorAll(".act button").length === 1);
  await page.waitForFunction(() => document.activeElement.textContent === "In flight");
});

test("what cannot be done is said with its reason and a hint", async () => {
  const stage = await new Stage().up();
  stage.set([pool("my/a", { limits: [slots(2, 1)], leases: [lease("one", "quick")] })]);
  stage.answers["/v1/leases/one"] = [{ detail: "the ledger is full", hint: "remove files" }, 507];
  const page = await visit(stage.url);
  await page.waitForSelector(".act button");
  await (await (await row(page, ".flying", "quick")).$("button")).click();
  page.expectsErrors = true; // The refusal is expected.
  await page.click("#ask-yes");
  await says(page, "#wrong", "The lease was not settled: the ledger is full");
  await says(page, "#wrong span", "remove files");
  await page.click("#wrong button");
  await page.waitForSelector("#wrong[hidden]");
  await stage.down();
});

test("refusals are counted by agent and kind, and the pause says why", async () => {
  await scene.home.run("throttle", "work/shadow", "--as", "data", "--kind", "quota",
    "--retry-after", "5min");
  await scene.home.run("throttle", "work/shadow", "--as", "data", "--kind", "overload");
  await scene.home.run("throttle", "work/shadow", "--as", "boss", "--kind", "quota");
  const page = await visit(`${scene.home.url}/#pool=work%2Fshadow`);
  await says(page, ".pill", "shadow mode");
  await says(page, ".answers", "Calls are counted and never delayed. In the last hour no call "
    + "would have waited. Enforced, the pool would be paused.");
  await says(page, ".refusals p", "3 refusals of 2 agents.");
  const cells = await page.$$eval(".refusals tbody tr", (rows) => rows.map((one) =>
    [...one.cells].slice(0, -1).filter((cell) => cell.checkVisibility())
      .map((cell) => cell.innerText)));
  // Kinds that did not occur have no column.
  assert.deepEqual(cells.sort(), [["boss", "1", "–"], ["data", "1", "1"]]);
  await says(page, ".events", "data got a 429 (quota), retry after 5 min");
});

test("light, dark, and a switch that is remembered", async () => {
  const ground = (of) => of.evaluate(() => getComputedStyle(document.documentElement)
    .backgroundColor);
  const page = await visit(`${scene.home.url}/#pool=work%2Frate`);
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
    const page = await visit(`${scene.home.url}/#pool=work%2Frate`, { scheme });
    await says(page, "main h2", "work/rate");
    await says(page, ".counts", "no refusal since");
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
  const page = await visit(`${scene.home.url}/#pool=work%2Frate`, { wide: 360 });
  for (const pool of ["work/rate", "work/shadow", "my/settled", "many/slots"]) {
    await page.evaluate((name) => { location.hash = `#pool=${encodeURIComponent(name)}`; }, pool);
    await says(page, "main h2", pool);
    const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth,
      innerWidth]);
    assert.equal(content, screen, pool);
  }
});

test("the page is small", async () => {
  const page = await visit(scene.home);
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
    const page = await visit(own);
    await says(page, ".limits", "1 left");
    page.expectsErrors = true;
    await page.click(".act button");
    await own.killDaemon();
    await says(page, "#gone", "The daemon has not answered since");
    await says(page, "dialog", "Not possible now: the daemon does not answer.");
    assert.equal(await page.$eval("#ask-yes", (one) => one.disabled), true);
    await page.click("#ask-no");
    await says(page, "#gone", "The figures below are from then.");
    await says(page, ".limits", "1 left");
    await page.waitForFunction(() => document.title === "(not connected) Standpipe");
    assert.equal(await page.$eval(".act button", (one) => one.disabled), true);
    await says(page, ".blocked", "Not possible: the daemon does not answer");
    await says(page, ".flying .sum", "Settling is not possible: the daemon does not answer.");
    const filter = await page.$eval(".page", (one) => getComputedStyle(one).filter);
    assert.match(filter, /grayscale/);
    await screenshot(page, "gone");
    await own.up();
    await says(page, "#notes", "The daemon answers again.");
    await page.waitForSelector("#gone[hidden]");
    assert.equal(await page.$eval(".act button", (one) => one.disabled), false);
    assert.equal(await page.$eval(".acts button", (one) => one.disabled || one.title), "");
    await page.waitForSelector(".blocked[hidden]");
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
    let page = await visit(own);
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
    page.wrong.length = 0;
    page = await visit(`${own.url}/#token=${token}`);
    await says(page, ".limits", "1 left");
    assert.equal(await page.evaluate(() => location.href), `${own.url}/`);
  });
});
