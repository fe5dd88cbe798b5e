// What a small screen must not lose: the command under its button, the name of the pool, whether the
// figures are live, what to do, and a heading.

import assert from "node:assert/strict";
import { test } from "node:test";
import { staged } from "./scene.mjs";
import { agent, lease, pool, rate, slots } from "./stage.mjs";
import { findings, says, screenshot, text } from "./support.mjs";

const PHONE = { wide: 390, high: 844, isPhone: true };

const overlaps = (page, one, other) => page.evaluate((a, b) => {
  const [first, second] = [a, b].map((css) => document.querySelector(css).getBoundingClientRect());
  return first.left < second.right && second.left < first.right && first.top < second.bottom
    && second.top < first.bottom;
}, one, other);

test("no button covers the command that it copies", async () => {
  for (const options of [PHONE, { wide: 1280 }]) {
    await staged([], async (page) => {
      await says(page, "#empty", "No pools yet");
      for (const at of [1, 2, 3]) {
        const pre = `#open pre:nth-of-type(${at})`;
        assert.equal(await overlaps(page, `${pre} code`, `${pre} button`), false);
      }
      // The heading of the page has its name, though only the picture is in sight.
      assert.equal(await page.$eval("h1", (one) => one.innerText.trim()), "Standpipe");
      assert.deepEqual(await findings(page), []);
    }, options);
  }
});

test("the head has the whole name of the pool, or its two ends", async () => {
  const shown = (page) => page.$eval("#switch .name", (one) => {
    const [head, tail] = one.children;
    return { text: one.textContent, isCut: head.scrollWidth > head.clientWidth,
      tail: tail?.getBoundingClientRect().width > 0, line: one.getBoundingClientRect().height };
  });
  const others = ["my/b", "my/c"].map((name) => pool(name, { pause: { until: new Date(Date.now()
    + 600_000).toISOString(), for_ms: 600_000, by: "ops", at: new Date().toISOString() } }));
  await staged([pool("openai/gpt-batch", { limits: [slots(2, 1)], leases: [lease("a", "x")] }),
    ...others], async (page) => {
    await says(page, "#switch", "openai/gpt-batch active +2 need attention");
    assert.deepEqual((await shown(page)).isCut, false);
    await says(page, "#link.ok", "live");
    assert.doesNotMatch(await text(page, "#link"), /\d/, "figures that are live need no time");
    await screenshot(page, "phone-head");
  }, PHONE);
  await staged([pool("anthropic/organisation-of-the-subsidiary-claude-sonnet-4-5")], async (page) => {
    await says(page, "#switch", "idle");
    const { isCut, tail, line } = await shown(page);
    assert.ok(isCut && tail && line < 30, `its end is in sight, on a line of ${line} px`);
  }, PHONE);
});

test("what to do is in sight when the daemon is gone", async () => {
  await staged([pool("my/a", { limits: [slots(2, 1)], leases: [lease("a", "x")] })],
    async (page, stage) => {
      await says(page, ".pill", "active");
      page.expectsErrors = true;
      await stage.down();
      await says(page, "#gone", "The daemon has not answered since");
      await says(page, "#gone", "Do: Start it with standpipe up.");
      assert.equal(await page.$eval("#gone details", (one) => one.open), false);
      await says(page, "#link.bad", "not connected");
      assert.deepEqual(await findings(page), []);
    }, PHONE);
});

test("long names of agents have the room of a column that is empty", async () => {
  const name = "nightly-regression-runner-of-the-data-platform-team-eu-central-1";
  const minute = "requests per 1min";
  const of = (more) => pool("my/a", { limits: [rate(minute, { amount: 60, used: 2 })],
    agents: [agent(name, { [minute]: 1 }), agent("docs", { [minute]: 1 }, more)] });
  await staged([of()], async (page, stage) => {
    await says(page, ".agents tbody", name);
    const lines = () => page.$eval(".agents tbody .name", (one) => Math.round(
      one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).lineHeight)));
    assert.ok(await lines() <= 2, `${await lines()} lines`);
    assert.equal(await page.$eval(".agents thead tr", (one) => one.lastChild.checkVisibility()), false);
    stage.set([of({ floor: ["25%"] })]);
    await says(page, ".agents tbody", "floor 25%");
  }, { wide: 1440 });
});

test("the ring of the focus does not cover what stands below a plot", async () => {
  const minute = "requests per 1min";
  await staged([pool("my/a", { limits: [rate(minute, { amount: 60, used: 2 })] })], async (page) => {
    await page.waitForSelector(".burn .handle");
    await page.focus(".burn .handle");
    await page.keyboard.press("ArrowLeft");
    const offset = await page.$eval(".burn .handle", (one) => getComputedStyle(one).outlineOffset);
    assert.ok(parseFloat(offset) <= -3, offset);
  });
});

test("a rejected configuration shows its first error unfolded", async () => {
  const file = "/etc/standpipe/standpipe.toml";
  const rejected = { at: new Date().toISOString(), file, errors: [`${file}:7: fifty a minute is no rate`,
    `${file}:9: unknown key`] };
  await staged([pool("my/a")], async (page) => {
    await says(page, "#rejected", `${file}:7: fifty a minute is no rate`);
    assert.doesNotMatch(await text(page, "#rejected"), /unknown key|keeps the previous one/);
    await page.click("#rejected summary");
    await says(page, "#rejected", "unknown key");
    assert.deepEqual(await findings(page), []);
  }, { ...PHONE, more: { config_rejected: rejected } });
});
