// The worst state of a pool, and the order of the list of pools. Pure: no page, no network.

import { slowedBy } from "./diagnosis.js";
import { SETTLED } from "./order.js";
import { count, joined, plural } from "./words.js";

// What a pool does while the store is unavailable: `closed` (it admits no call), `share` or `open`.
export const modeOf = ({ cut_off: offline, on_store_failure: mode }) => offline?.mode ?? mode
	?? "closed";

// Whether a pause that was known before an outage still runs.
export const isPaused = ({ pause }) => pause != null && Date.parse(pause.until) > Date.now();

// How grave the state of a pool is (`bad`: no call passes, `warn`, `shadow`, `ok`, `idle`), and in
// words.
export function stateOf(pool, isStoreDown = false) {
	const { cut_off: offline, unavailable, waiting, limits, parents = [] } = pool;
	const [terminal, pause] = ["terminal", "pause"].map((key) =>
		pool[key] ?? parents.find((parent) => parent[key]));
	if (offline || unavailable || isStoreDown) {
		const mode = modeOf(pool);
		if (mode === "closed") return ["bad", "store unavailable"];
		if (isPaused(pool)) return ["bad", "paused"];
		return ["warn", mode === "share" ? "on its share" : "not limited"];
	}
	if (!pool.enforce) return ["shadow", "shadow mode"];
	if (terminal) return ["bad", "stopped"];
	if (pause) return ["bad", "paused"];
	if (waiting > 0) return ["warn", `${count(waiting)} waiting`];
	if (limits.some(({ left }) => left === 0)) return ["warn", "full"];
	// A pool that no agent uses is not slow for anybody.
	if (!isActive(pool)) return ["idle", "idle"];
	return slowedBy(pool) ? ["warn", "degraded"] : ["ok", "active"];
}

// An agent that was active so lately uses the pool, as in `standpipe status`: between two calls of a
// program no call is in flight.
const RECENT = 60_000;
export const isActive = ({ in_flight: flying, agents }) => flying > 0
	|| agents.some((of) => !of.never_called && of.active_ms < RECENT);

// What a person should look at first has the smallest rank. Pools on which calls wait are ranked by
// the time that they waited together, in powers of two, so that the order is calm.
export function rankOf(pool, isStoreDown) {
	const [, word] = stateOf(pool, isStoreDown);
	const waited = pool.tickets.reduce((sum, of) => sum + of.waits_ms, 0) / 1_000;
	switch (word) {
		case "stopped": return 0;
		case "paused": return pool.waiting > 0 ? 1 : 4;
		case "store unavailable": case "on its share": case "not limited": return 2;
		case "degraded": return 5;
		case "full": return 6;
		case "active": return 7;
		case "shadow mode": return 8;
		case "idle": return 9;
		default: return 3.9 - Math.min(30, Math.floor(Math.log2(1 + waited))) / 40;
	}
}

// Whether a person should look at the pool.
export const needsAttention = (pool, isStoreDown) => rankOf(pool, isStoreDown) <= 5;

const natural = new Intl.Collator("en", { numeric: true });

// The order of the list: it changes only for what lasts, so that a short wait moves no pool, and not
// while `isHeld`. Names are sorted naturally: `team2` stands before `team10`.
export class Order {
	#ranks = new Map(); // the rank by which a pool is sorted, the rank it has now, and since when
	#names = [];

	sort(pools, isStoreDown, isHeld, now = Date.now()) {
		const before = this.#ranks;
		this.#ranks = new Map(pools.map((pool) => {
			const rank = rankOf(pool, isStoreDown);
			const old = before.get(pool.pool) ?? { sorted: rank, rank, since: now };
			const since = old.rank === rank ? old.since : now;
			const sorted = now - since >= SETTLED ? rank : old.sorted;
			return [pool.pool, { sorted, rank, since }];
		}));
		const byName = new Map(pools.map((pool) => [pool.pool, pool]));
		const wanted = [...byName.keys()].sort((a, b) => this.#ranks.get(a).sorted
			- this.#ranks.get(b).sorted || natural.compare(a, b));
		const held = this.#names.filter((name) => byName.has(name));
		this.#names = isHeld ? [...held, ...wanted.filter((name) => !held.includes(name))] : wanted;
		return this.#names.map((name) => byName.get(name));
	}
}

// What each pool does while the store is unavailable, with their names.
export function outageText(pools) {
	const part = (isIn, one, many) => {
		const found = pools.filter(isIn).map(({ pool }) => pool);
		const names = joined(", ", ...found.slice(0, 3), found.length > 3
			&& `${count(found.length - 3)} more`);
		return found.length > 0 && [found.length, `${found.length === 1 ? one : many} (${names})`];
	};
	const mode = (wanted) => (pool) => modeOf(pool) === wanted;
	const parts = [part(mode("closed"), "admits no calls", "admit no calls"),
		part(mode("share"), "admits its share", "admit their shares"),
		part(mode("open"), "admits calls without limits", "admit calls without limits")]
		.filter((found) => found);
	return parts.map(([n, text], at) => joined(" ", count(n), at === 0
		&& `of ${plural(pools.length, "pool")}`, text)).join("; ");
}
