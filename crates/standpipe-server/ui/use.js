// What is used of a limit, by whom, and of what. Every view takes its figures from here, so that a
// limit has one base everywhere. Pure: no page, no network.

import { limitName, plural } from "./words.js";

export const isSlots = ({ kind }) => kind === "parallel";
export const isBucket = ({ kind }) => kind === "bucket";

// Less than this part of a limit is not shown as use by others: providers round what they count.
const NOTABLE = 0.1;

// The provider's limit: as stated, or as the provider reported it if that is less.
export const quotaOf = ({ amount, learned }) => Math.min(amount, learned ?? amount);

// What others used. For a bucket it is what misses from it and no call of the pool used, as in
// others.rs; after a loss of the ledger a full bucket is no use by others.
function othersOf(pool, limit) {
	const { used, effective, refill, last_period: last } = limit;
	const named = Math.max(limit.by_others ?? 0, limit.outside ?? 0);
	if (!isBucket(limit) || pool.learning || pool.recovering) return named;
	const unnamed = used - (last ?? used);
	// A bucket that refills in more than one period still has older calls.
	const older = Math.max(0, effective - (refill ?? 0));
	return unnamed - older >= NOTABLE * quotaOf(limit) ? Math.max(named, unnamed) : named;
}

/**
 * The use of a limit in its period: what calls of the pool used (`own`, of which calls in flight
 * hold `held`), what others used, and the `base` of all percentages. Without use by others the base
 * is what is usable; with it, it is the provider's limit, of which others took their part.
 */
export function useOf(pool, limit) {
	const { held, effective, refill, used, last_period: last } = limit;
	const quota = quotaOf(limit);
	const own = (isBucket(limit) ? last ?? used : used) + held;
	const found = isSlots(limit) ? 0 : othersOf(pool, limit);
	const others = found > 0 && found >= NOTABLE * quota ? found : 0;
	const usable = Math.max(1, refill ?? effective);
	const base = others > 0 ? Math.max(1, quota, own + others) : usable;
	return { own, held, others, base, taken: own + others, isFull: limit.left === 0,
		// What Standpipe admits of the base, with what others used.
		most: others === 0 ? usable : Math.min(base, isBucket(limit) ? usable : others + effective) };
}

// A share in whole percent, rounded half up. A little is not shown as nothing, and no less than all
// as all.
export function share(part, all) {
	const percent = Math.round(100 * part / Math.max(1, all));
	if (percent === 0 && part > 0) return "<1 %";
	return `${percent >= 100 && part < all ? 99 : percent} %`;
}

const taken = (use) => use.used + use.held;
const OUTSIDE = "outside Standpipe";

// Who uses a limit, the largest first: name, amount, and percentages that add up.
export function usersOf(pool, limit) {
	const { others, base } = useOf(pool, limit);
	const found = pool.agents.map(({ name, usage = [] }) => ({ name, n: taken(usage.find((of) =>
		of.limit === limit.limit) ?? { used: 0, held: 0 }) })).filter(({ n }) => n > 0)
		.sort((a, b) => b.n - a.n || (a.name < b.name ? -1 : 1));
	if (others > 0) found.unshift({ name: OUTSIDE, n: others, isOutside: true });
	const percents = sharesOf(found.map(({ n }) => n), base);
	return found.map((one, at) => ({ ...one, percent: percents[at] }));
}

// Percentages of one base. If the parts are all of it, so are their percentages: the largest
// remainders are rounded up, unless that makes equal parts differ.
export function sharesOf(parts, base) {
	const sum = parts.reduce((all, n) => all + n, 0);
	if (sum !== base || parts.length > 100) return parts.map((n) => share(n, base));
	const exact = parts.map((n) => 100 * n / base);
	const whole = exact.map(Math.floor);
	const rest = 100 - whole.reduce((all, n) => all + n, 0);
	const order = exact.map((n, at) => [n - whole[at], at]).sort(([a], [b]) => b - a);
	for (const [, at] of order.slice(0, rest)) whole[at] += 1;
	const isUneven = parts.some((n, at) => whole[parts.indexOf(n)] !== whole[at]);
	if (isUneven) return parts.map((n) => share(n, base));
	return whole.map((n, at) => (n === 0 && parts[at] > 0 ? "<1 %" : `${n} %`));
}

// `blog 50 %, data 25 %`; of slots `blog (2 slots)`.
export function userNames(pool, limit, most = 3) {
	const all = usersOf(pool, limit);
	const texts = all.slice(0, most).map(({ name, n, percent }) =>
		(isSlots(limit) ? `${name} (${plural(n, "slot")})` : `${name} ${percent}`));
	return texts.concat(all.length > most ? [`${all.length - most} more`] : []).join(", ");
}

// The agents that used most of a limit, the largest first: name and amount.
export const largest = (pool, limit) => usersOf(pool, limit).filter(({ isOutside }) => !isOutside)
	.slice(0, 5).map(({ name, n }) => [name, n]);

// `blog 50 %, data 25 %, others 10 %`: who used a limit at a time of which the figures are kept.
export function usersThen(limit, { own, others, base, by }) {
	if (!by) return "";
	const named = by.slice(0, 3);
	const rest = own - named.reduce((sum, [, n]) => sum + n, 0);
	const isMore = by.length > 0 && rest > 0 && (by.length > 3 || rest >= base / 100);
	const all = [...(others > 0 ? [[OUTSIDE, others]] : []), ...named,
		...(isMore ? [["others", rest]] : [])];
	const percents = sharesOf(all.map(([, n]) => n), base);
	return all.map(([name, n], at) => (isSlots(limit) ? `${name} (${plural(n, "slot")})`
		: `${name} ${percents[at]}`)).join(", ");
}

// The limit that is closest to full. Slots come and go with each call, so they count only if they
// are full or nothing else is limited.
export function fullest(pool) {
	const isRated = pool.limits.some((limit) => !isSlots(limit));
	return pool.limits.filter((limit) => !isSlots(limit) || !isRated || limit.left === 0)
		.map((limit) => ({ limit, ...useOf(pool, limit) }))
		.reduce((most, of) => (most && partOf(most) >= partOf(of) ? most : of), null);
}

// How much of what can be used is used: a limit without room counts as full.
export const partOf = ({ taken: n, most, isFull }) => (isFull ? Math.max(1, n / most)
	: Math.min(0.999, n / most));

// The colour of a use, the same in every view: `high` if nothing is left, `full` if a call waits
// for it.
export const toneOf = (pool, limit) => (limit.left > 0 ? ""
	: pool.waiting > 0 && pool.tickets.some((of) => of.limit === limit.limit) ? "full" : "high");

// A short name, with the period once: `requests/min`, `output tokens/min`.
const SHORT = { minute: "min", hour: "h", day: "d", second: "s" };
export function shortName({ limit }) {
	const [unit, period] = limitName(limit).split(" per ");
	const name = unit === "parallel" ? "slots" : unit.replace(/_/g, " ");
	return period ? `${name}/${SHORT[period] ?? period}` : name;
}
