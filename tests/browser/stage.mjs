// A daemon that shows what a test sets: the page's own files, a stream of snapshots, the journal.
// For states that a real daemon reaches only after minutes, or with a provider's help.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const UI = new URL("../../crates/standpipe-server/ui/", import.meta.url);
const TYPES = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
  + "img-src 'self' data:";

export const at = (ms = 0) => new Date(Date.now() + ms).toISOString();

const WINDOW = { kind: "window", burst: null, learned: null, margin_per_mille: 0, outside: 0,
  by_others: 0, held: 0, full_again_ms: 40_000, pace_ms: null, next_grant_ms: null };

/** A rate of which `used` are used; a bucket if it has a `refill`. */
export function rate(limit, { amount, used = 0, held = 0, effective = amount, ...more }) {
  const own = { ...WINDOW, limit, unit: limit.split(" ")[0], amount, used, held, effective,
    left: Math.max(0, effective - used - held), period_ms: 60_000 };
  return more.refill === undefined ? { ...own, ...more }
    : { ...own, kind: "bucket", burst: amount, last_period: used, ...more };
}

export const slots = (amount, held) => ({ ...WINDOW, limit: "parallel", unit: "parallel",
  kind: "parallel", amount, effective: amount, used: 0, held, left: Math.max(0, amount - held),
  margin_per_mille: null, full_again_ms: null, period_ms: null });

/** An agent with what it uses: `{ "requests per 1min": 12 }`. */
export const agent = (name, usage = {}, more = {}) => ({ name, priority: "standard", in_flight: 0,
  waiting: 0, floor: [], cap: [], active_ms: 3_000, denied_ms: null, promoted: false,
  usage: Object.entries(usage).map(([limit, used]) => ({ limit, used, held: 0 })), ...more });

export const ticket = (name, position, more = {}) => ({ agent: name, priority: "standard",
  cost: { requests: 1 }, position, since: at(-4_000), waits_ms: 4_000, reason: "limit",
  limit: "requests per 1min", short_by: 1, until: null, expected: null, not_before: null,
  waiting_for: null, deadline_ms: 300_000, pid: 4_000 + position, model: null, task: null, ...more });

export const lease = (id, name, more = {}) => ({ id, agent: name, priority: "standard",
  cost: { parallel: 1 }, since: at(-7_000), age_ms: 7_000, holder: "session", pid: 21_982,
  expires_ms: 600_000, model: null, task: null, ...more });

export function pool(name, { limits = [], agents = [], tickets = [], leases = [], ...more } = {}) {
  return { pool: name, provider: null, at: at(), position: 1, enforce: true, margin_per_mille: 0,
    margin_auto: false, origin: { source: "file", version: null, written: null, changes: 0 },
    pause: null, terminal: null, learning: null, zone: "green", breaker: "closed", money: null,
    trouble: { incident: null, streak: 0, overloads: 0, coming_back: null, probe: null,
      one_at_a_time: null, speed_per_mille: null, learned_concurrency: null, cautious: null,
      retries: null }, skipped: 0, cut_off: null, limits, agents, tickets, leases,
    in_flight: leases.length, waiting: tickets.length, ...more };
}

export const pause = (ms, by = "ops") => ({ until: at(ms), for_ms: ms, by, at: at(-30_000) });

/** The daemon. `set(pools, more)` is shown at once, and each second again. */
export class Stage {
  #streams = new Set();
  #serial = 0;
  events = [];
  proxied = [];
  requests = [];
  /** Answers for paths that change something: status and body. */
  answers = {};

  async up() {
    this.set([]);
    this.server = createServer((request, response) => this.#answer(request, response));
    await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    this.timer = setInterval(() => this.#send(), 500);
    return this;
  }

  set(pools, more = {}) {
    this.snapshot = { schema: 1, store: "file:/tmp/state", pools, backpressure: [], ...more };
    if (this.timer) this.#send();
  }

  /** Ends all connections and answers no more. */
  async down() {
    clearInterval(this.timer);
    for (const stream of this.#streams) stream.destroy();
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  #send() {
    this.#serial += 1;
    for (const of of this.snapshot.pools) of.position = this.#serial;
    for (const stream of this.#streams) {
      stream.write(`event: pools\ndata: ${JSON.stringify(this.snapshot)}\n\n`);
    }
  }

  #answer(request, response) {
    const { pathname, searchParams } = new URL(request.url, this.url);
    const json = (body, status = 200) => response.writeHead(status,
      { "content-type": "application/json" }).end(JSON.stringify(body));
    const name = pathname === "/" ? "index.html" : /^\/ui\/([\w.]+)$/.exec(pathname)?.[1];
    if (name) {
      return response.writeHead(200, { "content-security-policy": POLICY,
        "content-type": TYPES[name.split(".").at(-1)] }).end(readFileSync(new URL(name, UI)));
    }
    if (request.method !== "GET") {
      this.requests.push(`${request.method} ${pathname}`);
      return json(...this.answers[pathname] ?? [{}]);
    }
    if (pathname === "/v1/pools") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      this.#streams.add(response);
      response.on("close", () => this.#streams.delete(response));
      return this.#send();
    }
    const kind = searchParams.get("kind");
    const bodies = { "/v1/history": { every_ms: 2_000, pools: this.history ?? [] },
      "/v1/proxied": { recent: this.proxied }, "/v1/events": { next: String(this.events.length),
        events: this.events.slice(Number(searchParams.get("after") ?? 0)).filter((event) =>
          !kind || event.kind === kind) } };
    return bodies[pathname] ? json(bodies[pathname]) : json({}, 404);
  }
}
