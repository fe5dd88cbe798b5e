// Whether what a frozen page shows is what its snapshot says, figure by figure. The wordings here
// are written a second time on purpose: the page's own must not vouch for itself.

import assert from "node:assert/strict";

const number = (shown) => Number(shown.replace(/,/g, ""));

/** Seconds of `1 h 2 min`, `3 min 20 s`, `850 ms`, in the steps in which the page says them. */
function seconds(shown) {
  const units = { ms: 0.001, s: 1, min: 60, h: 3_600, d: 86_400 };
  const found = [...shown.matchAll(/([\d.]+) (ms|s|min|h|d)\b/g)];
  assert.ok(found.length > 0, `no length in “${shown}”`);
  return found.reduce((sum, [, n, unit]) => sum + Number(n) * units[unit], 0);
}

function sameLength(shown, ms, what) {
  // Whole seconds below an hour, whole minutes below a day, rounded as the page does.
  const step = ms < 3_600_000 ? 1 : 60;
  const wanted = step === 1 ? Math.ceil(ms / 1_000) : Math.round(Math.ceil(ms / 1_000) / 60) * 60;
  assert.equal(seconds(shown), wanted, `${what}: “${shown}” for ${ms} ms`);
}

/** Names may hold characters that turn or hide text; the page writes them out. */
const visible = (word) => word.replace(/[\u200b\u202e]/g,
  (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);

function sameCost(shown, cost, what) {
  const said = Object.fromEntries(shown.split(", ").map((part) => {
    if (part.startsWith("$")) return ["usd", Math.round(number(part.slice(1)) * 1e6)];
    const [n, unit] = part.split(" ");
    return [unit === "request" ? "requests" : unit, number(n)];
  }));
  assert.deepEqual(said, Object.fromEntries(Object.entries(cost).filter(([, n]) => n > 0)), what);
}

export async function sameFigures(page, name) {
  const { pool, limits, rows, page: words } = await page.evaluate(async (wanted) => {
    const { shown } = await import("/ui/app.js");
    const inner = (one) => one.innerText;
    return {
      pool: shown().pools.find((of) => of.pool === wanted),
      limits: [...document.querySelectorAll(".limits > li")].map((item) => ({
        name: inner(item.querySelector("b")),
        left: inner(item.querySelector("span")),
        facts: Object.fromEntries([...item.querySelectorAll("dl > div")].map((fact) =>
          [inner(fact.children[0]), inner(fact.children[1])])),
      })),
      rows: [...document.querySelectorAll(".listing")].map((list) =>
        [...list.querySelectorAll("tbody tr")].map((row) => [...row.cells].map(inner))),
      page: inner(document.querySelector("main")),
    };
  }, name);
  assert.equal(limits.length, pool.limits.length);
  pool.limits.forEach((limit, at) => sameLimit(limits[at], limit));
  const [queue, leases, agents] = rows;
  sameQueue(queue, pool.tickets);
  sameLeases(leases, pool.leases);
  sameAgents(agents, pool.agents);
  assert.ok(words.includes(`zone ${pool.zone}`));
  assert.ok(words.includes(`margin ${pool.margin_per_mille / 10} %`));
}

function sameLimit({ name, left, facts }, limit) {
  assert.equal(name, limit.limit);
  const money = (shown) => (limit.unit === "usd" ? shown.slice(1) * 1e6 : number(shown));
  if (limit.left === 0) assert.equal(left, "full");
  else assert.equal(money(left.replace(" left", "")), limit.left, name);
  const same = { used: limit.used, held: limit.held, usable: limit.effective,
    limit: limit.amount };
  for (const [fact, wanted] of Object.entries(same)) {
    assert.equal(money(facts[fact]), wanted, `${name}: ${fact}`);
  }
  if (limit.margin_per_mille !== null) {
    assert.equal(facts.margin, `${limit.margin_per_mille / 10} %`);
  }
  if (limit.full_again_ms > 0) sameLength(facts["all free"], limit.full_again_ms, name);
}

/** An exact instant, a lower bound, or what must happen first: never one for another. */
function sameInstant(shown, { reason, until, not_before, waiting_for }) {
  const known = until ?? not_before;
  if (reason === null) return assert.equal(shown, "now");
  if (known === null) return assert.equal(shown, `waiting for ${waiting_for}`);
  const second = new Date(Math.ceil(Date.parse(known) / 1_000) * 1_000);
  const clock = second.toTimeString().slice(0, 8);
  assert.match(shown, until ? /^at / : /^not before /);
  assert.ok(shown.endsWith(clock), `“${shown}” for ${known}`);
}

function sameQueue(rows, tickets) {
  assert.equal(rows.length, tickets.length);
  tickets.forEach((ticket, at) => {
    const [place, who, tier, wants, why, waits, goes, deadline] = rows[at];
    assert.equal(number(place), ticket.position);
    for (const word of [ticket.agent, ticket.model, ticket.task, `pid ${ticket.pid}`]) {
      if (word !== null) assert.ok(who.includes(visible(word)), `${word} in “${who}”`);
    }
    assert.equal(tier, ticket.priority);
    sameCost(wants, ticket.cost, ticket.agent);
    if (ticket.short_by > 0) assert.equal(number(/short by ([\d,]+)/.exec(why)[1]), ticket.short_by);
    if (ticket.limit) assert.ok(why.includes(ticket.limit), why);
    sameLength(waits, ticket.waits_ms, "waits");
    sameInstant(goes, ticket);
    sameLength(deadline, ticket.deadline_ms, "gives up");
  });
}

function sameLeases(rows, leases) {
  assert.equal(rows.length, leases.length);
  leases.forEach((lease, at) => {
    const [who, tier, holds, age, ends] = rows[at];
    assert.ok(who.includes(lease.agent) && who.includes(`pid ${lease.pid}`), who);
    assert.equal(tier, lease.priority);
    sameCost(holds, lease.cost, lease.agent);
    sameLength(age, lease.age_ms, "age");
    if (lease.expires_ms !== null) sameLength(ends, lease.expires_ms, "ends");
  });
}

function sameAgents(rows, agents) {
  assert.equal(rows.length, agents.length);
  for (const agent of agents) {
    const found = rows.find(([name]) => name === agent.name);
    assert.ok(found, agent.name);
    const [, tier, flying, waiting, floor, cap, active] = found;
    assert.deepEqual([tier, number(flying), number(waiting)],
      [agent.priority, agent.in_flight, agent.waiting]);
    assert.deepEqual([floor, cap], [agent.floor.join(", ") || "–", agent.cap.join(", ") || "–"]);
    if (agent.active_ms >= 1_000) sameLength(active, agent.active_ms, "active");
  }
}
