// The limits of a pool as bars of the provider's limit: what others used, what calls of the pool
// used and hold, and the margin. What is left comes first. Calls in flight at once are slots and
// have a place of their own: a share of a rate and a number of slots do not compare.

import { attr, h, keyed, put, show } from "./dom.js";
import { isBucket, isSlots, quotaOf, toneOf, useOf } from "./use.js";
import { amount, joined, lastPeriod, length, limitName, listed, percent, soon, time } from "./words.js";

// So many slots are drawn one by one.
const MOST_SLOTS = 60;

export class Limits {
	heading = h("h3");
	none = h("p", { class: "none" });
	list = h("ul", { class: "limits" });
	root = h("section", { class: "limited" }, this.heading, this.none, this.list);

	// `stated` are the limits as they were before the store went away, `whose` the figures are.
	update(pool, stated, whose) {
		put(this.heading, `Limits${whose && ` (${whose})`}`);
		const { limits, trouble } = pool;
		put(this.none, trouble.cautious === null
			? "No limits known yet: state them in standpipe.toml or with --limit."
			: "Not known yet: they are learned from the provider’s answers.");
		show(this.none, limits.length === 0);
		const ordered = [...limits].sort((a, b) => isSlots(a) - isSlots(b));
		keyed(this.list, ordered, (of) => of.limit, gauge, (item, of) => measure(item, pool, of,
			stated?.find(({ limit }) => limit === of.limit)));
	}
}

function gauge(limit) {
	return h("li", { class: isSlots(limit) ? "apart" : "rate" },
		h("div", { class: "limithead" }, h("b", { text: limitName(limit.limit) }), h("span")),
		h("div", { role: "meter", "aria-label": limitName(limit.limit), "aria-valuemin": 0 }),
		h("ul", { class: "parts" }), h("p", { class: "use" }), h("p", { class: "fine" }));
}

function measure(item, pool, limit, stated) {
	const [head, bar, key, line, fine] = item.children;
	const { unit, effective } = limit;
	const text = (n) => amount(unit, n);
	// After a loss of the ledger the calls in flight are unknown.
	const use = { ...useOf(pool, limit), lost: isSlots(limit) && pool.learning };
	const asSlots = isSlots(limit) && effective <= MOST_SLOTS;
	attr(bar, "class", `${asSlots ? "slots" : "gauge"} ${toneOf(pool, limit)}`.trim());
	put(head.lastChild, leftOf(limit, use, text));
	attr(bar, "aria-valuemax", use.base);
	attr(bar, "aria-valuenow", Math.min(use.taken, use.base));
	attr(bar, "aria-valuetext", `${useText(limit, use, text)[0]}, ${head.lastChild.textContent}`);
	const parts = asSlots ? [] : partsOf(limit, use);
	if (asSlots) slots(bar, limit);
	else spans(bar, parts, limit, use);
	legend(key, parts, text);
	put(line, joined(" · ", ...useText(limit, use, text)));
	const share = stated && pool.cut_off?.mode === "share" && effective < stated.effective
		&& `this daemon’s share: ${text(effective)} of ${text(stated.effective)} (1 of ${
			pool.cut_off.among} processes)`;
	const small = joined(" · ", share, fineText(limit, text));
	put(fine, small);
	show(fine, small !== "");
}

// The step of a ramp, if that leaves less than the limit itself.
function rampOf({ ramp, effective, used, held }) {
	return ramp && ramp.usable - ramp.used < effective - used - held ? ramp : null;
}

// What is left, and for whom if floors keep all of it.
function leftOf(limit, { own, others, most, isFull }, text) {
	const { left, used, held, effective, kept = [] } = limit;
	const ramp = rampOf(limit);
	const over = ramp ? ramp.used - ramp.usable : isBucket(limit) ? used + held - effective
		: own + others - most;
	// Calls used more than they reserved, or shadow mode admitted them.
	if (over > 0 && isFull) return `over by ${text(over)}`;
	if (isFull) return over < 0 ? "none usable now" : "full";
	const isKept = kept.reduce((sum, of) => sum + of.units, 0) >= left;
	return `${text(left)} left${isBucket(limit) ? " now" : ""}${
		isKept ? `, kept for ${listed(kept.map((of) => of.agent))}` : ""}`;
}

function slots(bar, { held, effective }) {
	const all = Array.from({ length: Math.max(effective, held) }, (_, n) => n);
	keyed(bar, all, (n) => `slot ${n}`, () => h("i"), (slot, n) =>
		attr(slot, "class", n < held ? "taken" : "open"));
}

// The parts of the bar, from the left: kind, from where, how much.
function partsOf(limit, { own, held, others, most, base }) {
	const whole = Math.max(base, quotaOf(limit), own + others);
	const margin = whole - Math.max(most, own + others);
	return [["outside", 0, others], ["used", others, Math.max(0, own - held)],
		["held", others + Math.max(0, own - held), held],
		["margin", whole - margin, limit.margin_per_mille > 0 ? margin : 0]];
}

function spans(bar, parts, limit, { own, others, most, base }) {
	const whole = Math.max(base, quotaOf(limit), own + others);
	// The level of a bucket: from there to what is usable it can still be drawn from now.
	const level = isBucket(limit) ? [["level", Math.max(0, most - limit.left)]] : [];
	const marks = most < whole ? [["mark", most]] : [];
	keyed(bar, [...parts, ...marks, ...level], ([kind]) => kind, ([kind]) => h("i", { class: kind }),
		(span, [, from, size]) => {
			span.style.left = `${100 * from / whole}%`;
			if (size !== undefined) span.style.width = `${100 * size / whole}%`;
		});
}

const NAMES = { outside: "outside Standpipe", used: "used", held: "held by calls in flight",
	margin: "margin" };

// What the patterns of the bar mean, if there is more than one.
function legend(list, parts, text) {
	const isShared = parts.some(([kind, , size]) => kind === "outside" && size > 0);
	const seen = parts.filter(([kind, , size]) => size > 0 && (kind !== "used" || isShared));
	keyed(list, seen, ([kind]) => kind, ([kind]) => h("li", {},
		h("span", { class: "gauge swatch", "aria-hidden": "true" }, h("i", { class: kind })), h("span")),
	(item, [kind, , size]) => put(item.lastChild, `${NAMES[kind]} ${text(size)}`));
	show(list, seen.length > 0);
}

// What is used, of what, and when all of it is free: parts of one line.
function useText(of, use, text) {
	const ramp = rampOf(of);
	const isUsed = of.used + of.held > 0;
	const free = use.lost ? `full until ${time(use.lost.until)}`
		: !isUsed || of.full_again_ms === 0 ? use.others === 0 && "all free now"
		: of.full_again_ms === null ? "free when calls end" : `all free ${soon(of.full_again_ms)}`;
	const parts = (...found) => found.filter((part) => part);
	if (isSlots(of)) return parts(`${text(use.own)} of ${text(of.effective)} in flight`, free);
	// What was charged before the pause does not count, so the step has figures of its own.
	if (ramp) {
		return parts(`${text(ramp.used)} used of ${text(ramp.usable)} usable now`,
			`more ${soon(ramp.until_ms)}`);
	}
	const where = isBucket(of) ? ` in ${lastPeriod(of.limit)}` : "";
	if (use.others > 0) {
		return parts(`${text(use.taken)} of ${text(use.base)} used${where}, ${
			text(use.others)} outside Standpipe`, isUsed && free);
	}
	return parts(`${text(use.own)} of ${text(use.most)} used${where}`, free);
}

// Everything else that is not as usual: nothing of it is shown where it is zero.
function fineText(of, text) {
	const ramp = rampOf(of);
	const period = limitName(of.limit).split(" per ")[1];
	const margin = of.margin_per_mille > 0 && `margin ${percent(of.margin_per_mille)}`;
	const isLess = (of.refill ?? of.effective) < of.amount;
	const isLearned = of.learned !== null && of.learned < of.amount;
	const limit = isLearned ? `limit ${text(of.learned)} by the provider, ${text(of.amount)} stated`
		: isLess && `limit ${text(of.amount)}`;
	const stated = joined(", ", limit, margin);
	return joined(" · ",
		...(of.kept ?? []).map((one) => `${text(one.units)} kept for ${one.agent}`),
		ramp && `ramp after a pause: ${percent(ramp.per_mille)} of ${text(of.refill ?? of.effective)}`,
		isBucket(of) ? joined(" ", `refills ${text(of.refill ?? of.amount)} per ${period}`,
			stated && `(${stated})`) : stated,
		of.burst !== null && of.burst !== of.amount && `burst ${text(of.burst)}`,
		of.pace_ms !== null && `one call per ${length(of.pace_ms)}`,
		of.next_grant_ms > 0 && `next call ${soon(of.next_grant_ms)}`);
}

// The words of this page, for the list at its end.
export const MEANINGS = {
	left: "what calls may still use now",
	used: "counted in the current period, with what calls in flight hold",
	held: "reserved by calls in flight; what they do not use is free again when they end",
	usable: "the limit less the margin: what Standpipe admits in a period. Percentages are of it",
	"of limit": "percentages are of the provider’s limit while others use a notable part of it",
	outside: "used by calls with the same key that did not go through Standpipe",
	"now (left)": "a token bucket refills all the time; the thin mark is its level",
	kept: "what floors keep for other agents; it is lent out while they do not call",
	floor: "a part of every period, reserved for an agent",
	cap: "the most that an agent may use in every period",
	pacing: "calls are spaced out, so that a limit lasts while higher priorities are active",
	slots: "calls in flight at once (parallel)",
	place: "the position in the queue, by priority and fair order",
	denied: "for how long no call of a background agent was admitted although one waits",
	probe: "after a pause one call tries alone; the others wait for its answer",
	ramp: "after a pause a part of a limit is usable at first, and more with each period",
	retries: "the retries that a pool admits: 10 % of the last minute’s calls, at least three",
	"ledger lost": "the store lost what was in use, so slots and rates count as full for a while",
	margin: "the part of a limit that is left unused; it shrinks while the provider accepts all calls",
	"all free": "when nothing of the limit is in use any more, if no call comes",
	zone: "how much is left: green, amber (calls of lower priority are spaced out) or red "
		+ "(background waits)",
	breaker: "closed: normal. Pre-emptive: the quota will run out at this rate, and callers are "
		+ "advised to request less. Open: paused or stopped. Half-open: one call probes",
};
