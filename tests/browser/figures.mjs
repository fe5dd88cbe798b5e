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

/** Money has two decimals, and less than a cent is shown as that. */
const money = (micros) => (micros > 0 && micros < 5_000 ? "<$0.01"
  : `$${(micros / 1e6).toFixed(2)}`);

function sameCost(shown, cost, what) {
  const found = Object.fromEntries(shown.split(", ").map((part) => {
    if (part.includes("$")) return ["usd", part];
    const [n, unit] = part.split(" ");
    return [unit === "request" ? "requests" : unit === "slot" ? "parallel" : unit, number(n)];
  }));
  assert.deepEqual(found, Object.fromEntries(Object.entries(cost).filter(([, n]) => n > 0)
    .map(([unit, n]) => [unit, unit === "usd" ? money(n) : n])), what);
}

/** `requests per 1h` as a person says it. */
const nameOf = (limit) => limit.replace("per 1h", "per hour");
const shortOf = (limit) => limit.replace(" per 1h", "/h");

export async function sameFigures(page, name) {
  const { pool, limits, rows, uses, page: words } = await page.evaluate(async (wanted) => {
    const { shown } = await import("/ui/app.js");
    const inner = (one) => one.innerText;
    return {
      pool: shown().pools.find((of) => of.pool === wanted),
      limits: [...document.querySelectorAll(".limits > li")].map((item) => ({
        name: inner(item.querySelector("b")),
        left: inner(item.querySelector("span")),
        use: inner(item.querySelector(".use")),
        parts: inner(item.querySelector(".parts")),
        fine: inner(item.querySelector(".fine")),
      })),
      rows: [".waiting", ".flying", ".agents"].map((list) =>
        [...document.querySelectorAll(`${list} tbody tr`)].map((row) => [...row.cells].map(inner))),
      uses: [...document.querySelectorAll(".agents tbody tr")].map((row) =>
        [...row.querySelectorAll(".uses li")].map((use) => [...use.children].map(inner))),
      page: inner(document.querySelector(".settings")).replace(/\s+/g, " "),
    };
  }, name);
  assert.equal(limits.length, pool.limits.length);
  for (const limit of pool.limits) {
    sameLimit(limits.find((one) => one.name === nameOf(limit.limit)), limit);
  }
  const [queue, leases, agents] = rows;
  sameQueue(queue, pool.tickets);
  sameLeases(leases, pool.leases);
  sameAgents(agents, uses, pool);
  assert.ok(words.includes(`zone ${pool.zone}`));
  assert.ok(words.includes(`margin ${pool.margin_per_mille / 10} %`));
}

function sameLimit({ name, left, use, parts, fine }, limit) {
  assert.equal(name, nameOf(limit.limit));
  const amount = (n) => (limit.unit === "usd" ? money(n) : n.toLocaleString("en-US"));
  const { kept = [], used, held, effective, full_again_ms: free } = limit;
  const isKept = limit.left > 0 && kept.reduce((sum, of) => sum + of.units, 0) >= limit.left;
  assert.equal(left, limit.left === 0 ? "full" : `${amount(limit.left)} left${
    isKept ? `, kept for ${kept.map(({ agent }) => agent).join(" and ")}` : ""}`);
  const [taken, again] = use.split(" · ");
  const word = limit.kind === "parallel" ? "in flight" : "used";
  assert.equal(taken, `${amount(used + held)} of ${amount(effective)} ${word}`);
  if (free > 0) sameLength(again, free, name);
  else assert.equal(again, used + held === 0 ? "all free now" : "free when calls end");
  // Small print: only what is not as usual.
  if (limit.kind !== "parallel") {
    assert.equal(parts.includes(`held by calls in flight ${amount(held)}`), held > 0, parts);
  }
  const wanted = [...kept.map(({ units, agent }) => `${amount(units)} kept for ${agent}`),
    effective < limit.amount && `limit ${amount(limit.amount)}, margin ${
      limit.margin_per_mille / 10} %`].filter((one) => one);
  assert.deepEqual(fine ? fine.split(" · ") : [], wanted, name);
}

/** An exact instant or a forecast, a lower bound, or what must happen: never one for another. */
function sameInstant(shown, ticket) {
  const { reason, until, expected, not_before, waiting_for } = ticket;
  const known = until ?? expected ?? not_before;
  if (reason === null) return assert.equal(shown, "now");
  if (known === null && reason === "order") return assert.equal(shown, "after those ahead");
  if (known === null) return assert.equal(shown, `when ${waiting_for.replace(/ to end$/, " ends")}`);
  const isBound = !until && (!expected || ticket.or_later);
  assert.equal(shown.startsWith("≥ "), isBound, shown);
  const clock = new Date(known).toTimeString().slice(0, 8);
  const [, length] = (isBound ? /^≥ [\d:]+ \(in (.*)\)$/ : /^in (.*) \([\d:]+\)$/).exec(shown);
  assert.ok(shown.includes(clock), `${clock} in ${shown}`);
  sameLength(length, ticket.until_ms ?? ticket.expected_ms ?? ticket.not_before_ms, "admitted");
}

function sameQueue(rows, tickets) {
  assert.equal(rows.length, tickets.length);
  tickets.forEach((ticket, at) => {
    const [place, who, why, ahead, goes, wants, waits, deadline] = rows[at];
    const calls = ticket.reason === "order" ? ticket.calls_ahead ?? ticket.position - 1 : 0;
    assert.equal(ahead === "–" ? 0 : parseInt(ahead, 10), calls);
    assert.equal(number(place), ticket.position);
    for (const word of [ticket.agent, ticket.priority, ticket.model, ticket.task,
      `pid ${ticket.pid}`]) {
      if (word !== null) assert.ok(who.includes(visible(word)), `${word} in “${who}”`);
    }
    sameCost(wants, ticket.cost, ticket.agent);
    if (ticket.reason === "limit" && ticket.short_by > 0) {
      assert.equal(number(/\(short by ([\d,]+)\)/.exec(why)[1]), ticket.short_by);
    }
    if (ticket.limit) assert.ok(why.includes(nameOf(ticket.limit)), why);
    for (const name of ticket.ahead ?? []) {
      assert.ok(why.includes(name === ticket.agent ? "its own agent" : name), why);
    }
    sameLength(waits, ticket.waits_ms, "waits");
    sameInstant(goes, ticket);
    sameLength(deadline, ticket.deadline_ms, "gives up");
  });
}

function sameLeases(rows, leases) {
  assert.equal(rows.length, leases.length);
  leases.forEach((lease, at) => {
    const [who, holds, age, ends] = rows[at];
    for (const word of [lease.agent, lease.priority, `pid ${lease.pid}`]) {
      assert.ok(who.includes(word), `${word} in “${who}”`);
    }
    sameCost(holds, lease.cost, lease.agent);
    sameLength(age, lease.age_ms, "age");
    if (lease.expires_ms !== null) sameLength(ends, lease.expires_ms, "ends");
  });
}

/** Every agent with its share of each limit: the largest users of a rate first. */
function sameAgents(rows, uses, { agents, limits }) {
  const called = agents.filter((agent) => !agent.never_called);
  assert.equal(rows.length, called.length);
  for (const agent of called) {
    const at = rows.findIndex(([who]) => who.split(/\s/)[0] === agent.name);
    assert.ok(at >= 0, agent.name);
    const [who, , flying, waiting, active, remarks] = rows[at];
    const orNone = (shown) => (shown === "–" ? 0 : number(shown));
    assert.ok(who.includes(agent.priority), who);
    assert.deepEqual([orNone(flying), orNone(waiting)], [agent.in_flight, agent.waiting]);
    for (const [kind, all] of [["floor", agent.floor], ["cap", agent.cap]]) {
      for (const one of all) assert.ok(remarks.includes(`${kind} ${one}`), remarks);
      assert.equal(remarks.split(`${kind} `).length - 1, all.length, remarks);
    }
    if (agent.in_flight + agent.waiting > 0) assert.equal(active, "now");
    else if (agent.active_ms >= 1_000) sameLength(active, agent.active_ms, "active");
    const wanted = (agent.usage ?? []).map(({ limit, used, held }) => {
      const { unit, kind, effective, refill } = limits.find((of) => of.limit === limit);
      const percent = Math.round(100 * (used + held) / (refill ?? effective));
      const figure = unit === "usd" ? money(used + held) : (used + held).toLocaleString("en-US");
      return [kind === "parallel" ? "in flight" : shortOf(limit), "", figure,
        percent === 0 ? "<1 %" : `${percent} %`];
    });
    assert.deepEqual(uses[at], wanted, agent.name);
  }
  const percents = (of) => of.filter(([name]) => name !== "in flight")
    .map(([, , , part]) => parseInt(part || 0, 10));
  const largest = uses.map((of) => Math.max(0, ...percents(of)));
  assert.deepEqual(largest, [...largest].sort((a, b) => b - a), "the largest users first");
}
