// Every state of the dashboard, on a desktop and on a phone, light and dark: what a person must
// read in it, where, and a picture of it. The pictures are for the eye and are not compared.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Home, findings, launch, open, picture, provider, redis, says, screenshot, snapshots,
  until } from "./support.mjs";

const PHONE = { width: 390, height: 844 };
const LOOKS = ["light", "dark"].flatMap((scheme) => [
  { name: `desktop-${scheme}`, scheme },
  { name: `phone-${scheme}`, scheme, wide: PHONE.width, high: PHONE.height, isPhone: true },
]);
const POOL = "anthropic/sonnet";

const config = (upstream, parallel = 4) => `
open_pools = true

[provider.anthropic]
upstream = "${upstream}"

[pool."${POOL}"]
models   = ["claude-sonnet-*"]
requests = "50/min"
tokens   = "200000/h"
parallel = ${parallel}
margin   = 0
spread   = false
price    = { input_tokens = 3.0, output_tokens = 15.0 }

[pool."openai/gpt"]
requests = "500/min"
usd      = "20/d"
margin   = 0

[pool."github/core"]
requests = "5000/h"

[agent.release]
priority = "critical"
floor = "25%"

[agent.crawler]
priority = "background"
cap = { tokens = "60000/h" }
`;

let browser;
let home;
let upstream;

before(async () => {
  browser = await launch();
  upstream = await provider();
  home = new Home();
  writeFileSync(home.config, config(upstream.url));
  await home.up();
});

after(async () => {
  await browser?.close();
  upstream?.close();
  await home?.end();
});

/** Looks at the pool in every way, and keeps a picture of each. */
async function look(state, { at = home, pool = POOL, level, word, ...check }) {
  for (const { name, ...options } of LOOKS) {
    const page = await open(browser, `${at.url}/#pool=${encodeURIComponent(pool)}`, options);
    try {
      await says(page, "main h2", pool);
      await check.ready?.(page);
      await says(page, ".pill", word);
      await sameEverywhere(page, pool, level, word);
      if (options.isPhone) await openBanners(page);
      await check.read?.(page, options);
      await noSidewaysScroll(page);
      if (options.isPhone) await withinTwoScreens(page);
      else await aboveTheFold(page);
      assert.deepEqual(await findings(page), [], `${state} ${name}`);
      await screenshot(page, `states/${state}-${name}`);
      assert.deepEqual(page.wrong, [], `${state} ${name}`);
      await check.after?.(page);
    } finally {
      await page.close();
    }
  }
}

/** The pill, the answers and the list of pools have the same level, and so the same colour. */
async function sameEverywhere(page, pool, level, word) {
  await says(page, "#rail [aria-current] .word, #switch .word", word);
  const [classes, colours] = await page.evaluate(() => {
    const all = [".pill", ".answers", "#rail [aria-current]"].map((css) =>
      document.querySelector(css));
    const colour = (css) => getComputedStyle(document.querySelector(css)).color;
    return [all.map((one) => one.className),
      [colour(".pill"), colour("#rail [aria-current] .word")]];
  });
  for (const one of classes) assert.ok(one.split(" ").includes(level), `${level} in ${one}`);
  assert.equal(colours[0], colours[1]);
}

/** On a small screen a banner is one line until it is opened. */
async function openBanners(page) {
  for (const head of await page.$$(".banner summary")) {
    const isShut = await head.evaluate((one) => one.checkVisibility() && !one.parentElement.open);
    if (isShut) await head.click();
  }
}

/** No element that is found has such a text. */
async function noneSays(page, css, wrong) {
  for (const text of await page.$$eval(css, (all) => all.map((one) => one.innerText))) {
    assert.doesNotMatch(text, wrong);
  }
}

const rowsOf = (page, list) => page.$$eval(`${list} tbody tr`, (all) => all.length);

async function noSidewaysScroll(page) {
  const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth,
    document.documentElement.clientWidth]);
  assert.ok(content <= screen, `${content} px of content on ${screen} px`);
}

const bottomOf = (page, css) => page.$eval(css, (one) =>
  one.getBoundingClientRect().bottom + scrollY);

/** The answers, the waiting calls, the agents and the limits. */
async function withinTwoScreens(page) {
  await inReach(page);
  for (const css of [".answers", ".waiting", ".agents"]) {
    const bottom = await bottomOf(page, css);
    assert.ok(bottom <= 2 * PHONE.height, `${css} ends at ${bottom} px`);
  }
}

/** A finger reaches every control. */
async function inReach(page) {
  const small = await page.$$eval("button, select, summary, #rail a", (all) => all.filter((one) =>
    one.checkVisibility() && one.getBoundingClientRect().height < 44).map((one) => one.innerText));
  assert.deepEqual(small, []);
}

async function aboveTheFold(page) {
  for (const css of [".answers", ".waiting"]) {
    const bottom = await bottomOf(page, css);
    assert.ok(bottom <= 900, `${css} ends at ${bottom} px`);
  }
}

/** A message through the proxy. */
async function message(agent) {
  const answer = await fetch(`${home.url}/as/${agent}/anthropic/v1/messages`, { method: "POST",
    headers: { "content-type": "application/json", "x-api-key": "a-key" },
    body: JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 400,
      messages: [{ role: "user", content: "write the post" }] }) });
  assert.equal(answer.status, 200, await answer.text());
}

test("used: no call is in flight, and what was used before", async () => {
  for (const agent of ["blog", "blog", "blog", "release", "crawler"]) await message(agent);
  // A pool that an agent used in the last minute is not idle.
  await look("used", { level: "ok", word: "active", read: async (page, options) => {
    await says(page, ".answers", "No call is in flight. Most used: requests per minute, 10 %: blog "
      + "6 %, crawler 2 %, release 2 %.");
    await says(page, ".counts", "none in flight · none waiting · no refusal since");
    await says(page, ".agents", "blog");
    // One base for all limits: what is usable in the limit's period, also of a bucket.
    await says(page, ".agents .uses", "tokens/h 8,340 4 %");
    await says(page, ".agents .uses", "requests/min 3 6 %");
    await says(page, options.isPhone ? ".agents .percents" : ".agents thead",
      options.isPhone ? "in percent of usable" : "used of usable");
    // What a bucket passed and what it still has to refill are two figures with names.
    await says(page, ".limits .rate", "5 of 50 used in the last minute");
    await says(page, ".limits .rate", "13,900 of 200,000 used · all free in 59 min");
    await says(page, ".limits .fine", "refills 50 per minute");
    await noneSays(page, ".limits", /\b(0 held|margin 0)/);
    const reading = await page.$eval(".burn .handle", (one) => one.ariaValueText);
    assert.match(reading, /requests\/min 10 % \(5 of 50\): blog 6 %, crawler 2 %/);
    // Pools of which nothing is used show when they were used last.
    await noneSays(page, "#rail", /\b0 %/);
    if (options.isPhone) await says(page, ".agents tbody .late", "ago");
    else await says(page, "#rail", "github/core idle no call yet");
    // Proxied calls, with model, tokens and money.
    await says(page, ".proxied", "The last 5 calls: 12,000 input, 1,900 output tokens, $0.06");
    await says(page, ".proxied tbody tr", "claude-sonnet-4-5");
    // Calls of one agent with the same answer are one row, until each is asked for.
    assert.deepEqual(await rowsOf(page, ".proxied"), 3);
    await says(page, ".proxied tbody tr", "7,200");
    await page.click(".proxied .small");
    await page.waitForSelector(".proxied .small[aria-pressed=true]");
    if (!options.isPhone) assert.deepEqual(await rowsOf(page, ".proxied"), 5);
    await says(page, ".proxied tbody tr", "2,400");
    await says(page, ".proxied tbody tr", "$0.01");
    await page.click(".proxied .small");
    await says(page, ".counts", "$0.06 in the last day");
  } });
});

test("busy: who uses the quota, and calls pass", async () => {
  const hold = (agent, tokens, model) => home.reserve({ pool: POOL, agent, model,
    cost: { tokens } });
  await hold("blog", 24_000, "claude-sonnet-4-5");
  await hold("crawler", 18_000, "claude-sonnet-4-5");
  await hold("release", 9_000, "claude-sonnet-4-5");
  await look("busy", { level: "ok", word: "active", read: async (page) => {
    await says(page, ".answers", "3 calls are in flight; calls pass without waiting.");
    const uses = await page.$$eval(".agents tbody tr", (rows) => rows.map((row) =>
      row.querySelector(".name").innerText));
    // By the largest share of a rate. Slots come and go with each call.
    assert.deepEqual(uses, ["blog", "crawler", "release"]);
    await says(page, ".agents tbody tr", "floor 25%");
    await says(page, ".agents tbody tr", "cap tokens 60k/h");
    // Slots are apart from the rates.
    assert.equal((await page.$$(".limits .slots .taken")).length, 3);
    assert.equal((await page.$$(".limits .slots i")).length, 4);
  } });
});

test("waiting: why, behind which agent, until when, what to do", async () => {
  await home.reserve({ pool: POOL, agent: "blog", cost: { tokens: 24_000 } });
  const waiting = async (many) => until(`${many} wait`, async () =>
    (await home.status(POOL)).waiting === many);
  for (const [at, agent] of ["docs", "blog", "crawler"].entries()) {
    home.queue({ pool: POOL, agent, cost: { tokens: 12_000 }, task: "nightly" });
    await waiting(at + 1);
  }
  const status = (await home.run("status", POOL)).replace(/\s+/g, " ");
  await look("waiting", { level: "warn", word: "3 waiting", read: async (page) => {
    await says(page, ".answers", "3 calls wait, docs first: parallel has no room (short by 1), "
      + "in use by blog (2 slots), release and crawler.");
    await says(page, ".answers", "Next docs when a call in flight ends");
    await says(page, ".answers", "If a program hangs, settle its lease below.");
    await says(page, ".waiting tbody tr", "behind docs in the queue for parallel");
    // The reasons are those of `standpipe status`, word by word.
    const reasons = await page.$$eval(".waiting .why", (all) =>
      all.map((one) => one.textContent));
    assert.equal(reasons[2], "behind docs and blog in the queue for parallel");
    for (const reason of reasons) assert.ok(status.includes(reason), `${reason} in ${status}`);
    // How many calls are ahead.
    const ahead = await page.$$eval(".waiting [data-head=ahead]", (all) =>
      all.map((one) => one.textContent));
    assert.deepEqual(ahead, ["–", "1 call", "2 calls"]);
    const chips = await page.$$eval(".waiting .chip", (all) => all.map((one) => one.textContent));
    assert.deepEqual(chips, ["slots", "slots", "slots"]);
    // A lease expires; when its call ends is not known.
    assert.ok(await page.$(".flying tbody [data-head=expires]"));
    assert.equal(await page.title(), "(3 waiting) Standpipe");
  } });
  for (const scheme of ["light", "dark"]) {
    const page = await open(browser, `${home.url}/#pool=${encodeURIComponent(POOL)}`,
      { scheme, high: 1266 });
    await says(page, ".waiting tbody tr", "behind docs");
    await says(page, ".burn .readout", "tokens/h");
    await says(page, "#store", "file:~/.local/state/standpipe");
    await picture(page, `dashboard-${scheme}`);
    await page.close();
  }
});

test("paused: by hand or by a 429, until when, what to do", async () => {
  await home.run("pause", POOL, "--for", "30min", "--as", "ops");
  await look("paused", { level: "bad", word: "paused", read: async (page) => {
    await says(page, ".answers", "No call is admitted: paused by ops at");
    const until = await page.$eval(".answers div:nth-child(2)", (one) => one.innerText);
    assert.match(until, /in \d+ min( \d+ s)? \(\d\d:\d\d:\d\d\)/);
    await says(page, ".answers", "press Resume to end it now");
    await says(page, ".waiting tbody tr", "by ops at");
    // The pause ends half an hour before the calls give up.
    await noneSays(page, ".waiting", /before its turn/);
    assert.equal(await page.title(), "(1 paused, 3 waiting) Standpipe");
  } });
  await home.run("throttle", "openai/gpt", "--as", "docs", "--kind", "quota",
    "--retry-after", "4min");
  await look("refused", { pool: "openai/gpt", level: "bad", word: "paused", read: async (page) => {
    await says(page, ".answers", "No call is admitted: docs got a 429 (quota) at");
    await says(page, ".answers", "Resume ends it now, but the provider may refuse again.");
    // What the provider asked for is not ended by one click.
    await page.click("button ::-p-text(Resume)");
    await says(page, "dialog", "the provider may refuse again");
    await page.click("#ask-no");
    await says(page, ".refusals", "docs");
    // An agent that only the file names has not been active at any time.
    const release = await page.$eval(".agents .more", (one) => one.innerText);
    assert.match(release, /No call yet: release/);
    assert.doesNotMatch(release, /\bago\b|\bnow\b/);
    // What its floor keeps is shown with the limit.
    await says(page, ".limits", "$5.00 kept for release");
    // In one step: every snapshot draws the labels anew.
    const cut = await page.evaluate(() => [...document.querySelectorAll(
      "main svg[role=img] text")].filter((one) => {
      const [own, room] = [one, one.ownerSVGElement].map((of) => of.getBoundingClientRect());
      return own.width > 0 && (own.right > room.right || own.left < room.left);
    }).map((one) => one.textContent));
    assert.deepEqual(cut, [], "no label of a plot is cut");
  } });
});

test("degraded: what is reduced, and what to do", async () => {
  await home.run("resume", "openai/gpt");
  await home.run("throttle", "openai/gpt", "--as", "docs", "--kind", "quota",
    "--retry-after", "1s");
  await look("degraded", { pool: "openai/gpt", level: "warn", word: "degraded",
    read: async (page) => {
      await says(page, ".answers", "After a pause: the next call probes alone.");
      await says(page, ".answers", "Ends when the next call succeeds");
      await says(page, ".answers", "Do Nothing to do; it ends by itself.");
      await says(page, ".limits", "0 used of 250 usable now · more in");
      await says(page, ".limits .fine", "ramp after a pause: 50 % of 500");
    } });
});

test("config rejected: the errors, and the previous file stays active", async () => {
  writeFileSync(home.config, config(upstream.url).replace("50/min", "fifty a minute"));
  const shown = { pool: "github/core", level: "idle", word: "idle" };
  await look("config-rejected", { ...shown, ready: (page) =>
    says(page, "#rejected", "The configuration was rejected at"), read: async (page) => {
    await says(page, "#rejected", "The daemon keeps the previous one.");
    await says(page, "#rejected", "standpipe.toml:");
    await says(page, "#rejected", "fifty a minute");
    await says(page, "#rejected", "Do: Fix the file.");
  } });
  const { config_rejected: rejected } = await (await fetch(`${home.url}/v1/pools`)).json();
  assert.equal(rejected.errors.length, 1);
  // Twice the slots; the plot keeps what was in use of the slots that there were.
  writeFileSync(home.config, config(upstream.url, 8));
  await look("config-applied", { level: "bad", word: "paused", ready: (page) =>
    page.waitForSelector("#rejected[hidden]"), read: async (page) => {
    await page.waitForFunction(() => document.querySelectorAll(".limits .slots i").length === 8);
  } });
});

test("the plot divides by the limit in force at the time", async () => {
  const own = new Home("[pool.\"my/rate\"]\nrequests = \"4/h\"\nmargin = 0\n");
  try {
    await own.up();
    for (const agent of ["a", "b", "c"]) await own.reserve({ pool: "my/rate", agent });
    await until("a sample of it is taken", async () => {
      const { pools } = await (await fetch(`${own.url}/v1/history?pool=my/rate`)).json();
      return pools[0]?.limits[0].samples.some(([, used]) => used === 3);
    });
    writeFileSync(own.config, "[pool.\"my/rate\"]\nrequests = \"10/h\"\nmargin = 0\n");
    await until("it is applied", async () => (await own.status("my/rate")).limits[0].amount === 10);
    const page = await open(browser, own.url);
    await says(page, ".limits", "7 left");
    await page.waitForFunction(() => /requests per hour: now 30 %, highest 75 %/.test(
      document.querySelector(".burn svg.plot").getAttribute("aria-label")));
    assert.deepEqual(page.wrong, []);
  } finally {
    await own.end();
  }
});

test("store unavailable: since when, why, what to do", async () => {
  const own = new Home();
  try {
    const server = await redis(own);
    writeFileSync(own.config, `store = "${server.url}"\n${config(upstream.url)}`);
    await own.up();
    await own.reserve({ pool: POOL, agent: "blog", cost: { tokens: 24_000 } });
    await until("it is read", async () => {
      const { pools } = await (await fetch(`${own.url}/v1/pools`)).json();
      return pools.some(({ pool, in_flight }) => pool === POOL && in_flight === 1);
    });
    server.child.kill("SIGKILL");
    await server.child.ended;
    await look("store-unavailable", { at: own, level: "bad", word: "store unavailable",
      ready: (page) => says(page, "#outage", "The store does not answer."),
      read: async (page) => {
        await says(page, "#outage", "The figures are");
        await says(page, "#outage", "3 of 3 pools admit no calls (anthropic/sonnet, github/core, "
          + "openai/gpt).");
        await says(page, "#link", "figures of");
        await says(page, "#outage", "is reachable: standpipe doctor.");
        await says(page, ".answers", "The store does not answer. No call is admitted: calls wait "
          + "until their timeout, then fail (503, exit code 69).");
        await says(page, ".burn .readout", "(last reading)");
        // What cannot be done is disabled, with the reason beside it.
        await says(page, ".blocked", "Not possible: the store is unavailable");
        await says(page, ".flying .sum", "Settling is not possible: the store is unavailable.");
        const buttons = await page.$$eval(".acts button, .act button", (all) => all.filter((one) =>
          one.checkVisibility()).map((one) => [one.disabled, one.title]));
        assert.equal(buttons.length, 2);
        for (const one of buttons) {
          assert.deepEqual(one, [true, "Not possible: the store is unavailable"]);
        }
      } });
  } finally {
    await own.end();
  }
});

test("store unavailable: a pool on its share is no outage", async () => {
  const page = await open(browser, home.url);
  try {
    const [text, states] = await page.evaluate(async () => {
      const { outageText, stateOf } = await import("/ui/state.js");
      const pools = [{ pool: "my/slots", cut_off: null },
        { pool: "anthropic/sonnet", cut_off: { mode: "share", among: 2 } }];
      return [outageText(pools), pools.map((pool) => stateOf(pool, true))];
    });
    assert.equal(text, "1 of 2 pools admits no calls (my/slots); 1 admits its share "
      + "(anthropic/sonnet)");
    assert.deepEqual(states, [["bad", "store unavailable"], ["warn", "on its share"]]);
  } finally {
    await page.close();
  }
});

test("a store that never answered is shown with its error", async () => {
  const own = new Home();
  try {
    const server = await redis(own);
    server.child.kill("SIGKILL");
    await server.child.ended;
    writeFileSync(own.config, `store = "${server.url}"\nopen_pools = true\n`);
    await own.up("/healthz");
    const page = await open(browser, own.url);
    page.expectsErrors = true; // The 503 is expected.
    await says(page, "#gone", "The store is unavailable. Calls get 503 until it answers.");
    await says(page, "#link", "connected, store unavailable");
    await says(page, "#gone", `${server.url} refuses connections.`);
    await says(page, "#gone", "Do: check that the server runs and listens there.");
    await page.close();
  } finally {
    await own.end();
  }
});

test("daemon gone: since when, and the last figures", async () => {
  const own = new Home();
  writeFileSync(own.config, config(upstream.url));
  try {
    await own.up();
    await own.reserve({ pool: POOL, agent: "blog", cost: { tokens: 24_000 } });
    await look("daemon-gone", { at: own, level: "ok", word: "active", ready: async (page) => {
      await snapshots(page, 1);
      page.expectsErrors = true;
      await own.killDaemon();
      await says(page, "#gone", "The daemon has not answered since");
    }, read: async (page) => {
      await says(page, "#gone", "The figures below are from then.");
      await says(page, "#gone", "Start it with standpipe up.");
      await says(page, "#link", "not connected");
    }, after: () => own.up() });
  } finally {
    await own.end();
  }
});
