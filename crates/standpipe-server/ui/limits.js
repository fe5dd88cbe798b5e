// The limits of a pool as bars. What is left comes first, then what is used and when it is free;
// everything else is one line of small print. Calls in flight at once are slots and have a place of
// their own: a share of a rate and a number of slots do not compare.

import { attr, h, keyed, put, show } from "./dom.js";
import { amount, joined, lastPeriod, length, limitName, listed, percent, whole } from "./words.js";

// So many slots are drawn one by one.
const MOST_SLOTS = 60;

export class Limits {
	none = h("p", { class: "none" });
	list = h("ul", { class: "limits" });
	root = h("section", { class: "limited" }, h("h3", { text: "Limits" }), this.none, this.list);

	update({ limits, trouble, waiting }) {
		put(this.none, trouble.cautious === null
			? "No limits known yet: state them in standpipe.toml or with --limit."
			: "Not known yet: they are learned from the provider’s answers.");
		show(this.none, limits.length === 0);
		const ordered = [...limits].sort((a, b) => isSlots(a) - isSlots(b));
		keyed(this.list, ordered, (of) => of.limit, gauge,
			(item, of) => measure(item, of, waiting > 0));
	}
}

const isSlots = ({ kind }) => kind === "parallel";

// What is used, what calls in flight hold, what is usable, and how large the limit is.
function gauge(limit) {
	return h("li", { class: isSlots(limit) ? "apart" : "rate" },
		h("div", { class: "limithead" }, h("b", { text: limitName(limit.limit) }), h("span")),
		h("div", { role: "meter", "aria-label": limitName(limit.limit), "aria-valuemin": 0 }),
		h("p", { class: "use" }), h("p", { class: "fine" }));
}

function measure(item, limit, isWaiting) {
	const [head, bar, use, fine] = item.children;
	const { unit, used, held, effective, left } = limit;
	const text = (n) => amount(unit, n);
	const asSlots = isSlots(limit) && effective <= MOST_SLOTS;
	const isHigh = !isSlots(limit) && (left === 0 || (used + held) >= 0.8 * effective);
	const level = left === 0 && isWaiting ? "full" : isHigh ? "high" : "";
	attr(bar, "class", `${asSlots ? "slots" : "gauge"} ${level}`.trim());
	if (asSlots) slots(bar, limit);
	else spans(bar, limit);
	put(head.lastChild, leftOf(limit, text));
	attr(bar, "aria-valuemax", effective);
	attr(bar, "aria-valuenow", Math.min(used + held, effective));
	attr(bar, "aria-valuetext", `${text(used)} used, ${text(held)} held, of ${text(effective)}`);
	put(use, useText(limit, text));
	const small = fineText(limit, text);
	put(fine, small);
	show(fine, small !== "");
}

// The step of a ramp, if that leaves less than the limit itself.
function rampOf({ ramp, effective, used, held }) {
	return ramp && ramp.usable - ramp.used < effective - used - held ? ramp : null;
}

// What is left, and for whom if floors keep all of it.
function leftOf(limit, text) {
	const { left, used, held, effective, kept = [] } = limit;
	const ramp = rampOf(limit);
	const over = ramp ? ramp.used - ramp.usable : used + held - effective;
	// Calls used more than they reserved, or shadow mode admitted them.
	if (over > 0) return `over by ${text(over)}`;
	// After a loss of the ledger calls in flight are unknown, and all of it counts as used.
	if (left === 0) return over < 0 ? "none usable now" : "full";
	const isKept = kept.reduce((sum, of) => sum + of.units, 0) >= left;
	return `${text(left)} left${isKept ? `, kept for ${listed(kept.map((of) => of.agent))}` : ""}`;
}

function slots(bar, { held, effective }) {
	const all = Array.from({ length: Math.max(effective, held) }, (_, n) => n);
	keyed(bar, all, (n) => `slot ${n}`, () => h("i"), (slot, n) =>
		attr(slot, "class", n < held ? "taken" : "open"));
}

function spans(bar, limit) {
	const { used, held, effective } = limit;
	const outside = Math.min(limit.outside, used);
	const all = Math.max(limit.burst ?? limit.amount, effective, used + held, 1);
	const parts = [["used", 0, used - outside], ["outside", used - outside, outside],
		["held", used, held], ...(effective < all ? [["mark", effective]] : [])];
	keyed(bar, parts, ([kind]) => kind, ([kind]) => h("i", { class: kind }),
		(span, [, from, size]) => {
			span.style.left = `${100 * from / all}%`;
			if (size !== undefined) span.style.width = `${100 * size / all}%`;
		});
}

// What is used of what is usable, and when all of it is free. A bucket refills all the time, so its
// level is not what was used: both figures are shown, each with its name.
function useText(of, text) {
	const [taken, ramp] = [of.used + of.held, rampOf(of)];
	const free = taken === 0 || of.full_again_ms === 0 ? "all free now"
		: of.full_again_ms === null ? "free when calls end" : `all free in ${whole(of.full_again_ms)}`;
	if (isSlots(of)) return `${text(taken)} of ${text(of.effective)} in flight · ${free}`;
	// What was charged before the pause does not count, so the step has figures of its own.
	if (ramp) {
		return `${text(ramp.used)} used of ${text(ramp.usable)} usable now · more in ${
			whole(ramp.until_ms)}`;
	}
	if (of.kind !== "bucket") return `${text(taken)} of ${text(of.effective)} used · ${free}`;
	return joined(" · ", `${text((of.last_period ?? 0) + of.held)} used in ${lastPeriod(of.limit)}`,
		taken > 0 && `${text(taken)} of ${text(of.effective)} to refill`, free);
}

// Everything else that is not as usual: nothing of it is shown where it is zero.
function fineText(of, text) {
	const [isBucket, ramp] = [of.kind === "bucket", rampOf(of)];
	const period = limitName(of.limit).split(" per ")[1];
	const margin = of.margin_per_mille > 0 && `margin ${percent(of.margin_per_mille)}`;
	const isLess = (isBucket ? of.refill ?? of.amount : of.effective) < of.amount;
	const isLearned = of.learned !== null && of.learned < of.amount;
	const limit = isLearned ? `limit ${text(of.learned)} by the provider, ${text(of.amount)} stated`
		: isLess && `limit ${text(of.amount)}`;
	const stated = joined(", ", limit, margin);
	return joined(" · ",
		!isSlots(of) && of.held > 0 && `${text(of.held)} of it held by calls in flight`,
		...(of.kept ?? []).map((one) => `${text(one.units)} kept for ${one.agent}`),
		of.outside > 0 && `${text(of.outside)} of it used outside Standpipe`,
		of.by_others > 0 && `${text(of.by_others)} used by others`,
		ramp && `ramp after a pause: ${percent(ramp.per_mille)} of ${text(of.refill ?? of.effective)}`,
		isBucket ? joined(" ", `refills ${text(of.refill ?? of.amount)} per ${period}`,
			stated && `(${stated})`) : stated,
		of.burst !== null && of.burst !== of.amount && `burst ${text(of.burst)}`,
		of.pace_ms !== null && `one call per ${length(of.pace_ms)}`,
		of.next_grant_ms > 0 && `next call in ${length(of.next_grant_ms)}`);
}

// The words of this page, for the list at its end.
export const MEANINGS = {
	left: "what calls may still use now",
	used: "counted in the current period, with what calls in flight hold",
	held: "reserved by calls in flight; what they do not use is free again when they end",
	usable: "the limit less the margin: what Standpipe admits in a period. Percentages are of it",
	"to refill": "a token bucket refills all the time; this part of it is still missing",
	kept: "what floors keep for other agents; it is lent out while they do not call",
	margin: "the part of a limit that is left unused; it shrinks while the provider accepts all calls",
	"all free": "when nothing of the limit is in use any more, if no call comes",
	zone: "how much is left: green, amber (calls of lower priority are spaced out) or red "
		+ "(background waits)",
	breaker: "closed: normal. Pre-emptive: the quota will run out at this rate, and callers are "
		+ "advised to request less. Open: paused or stopped. Half-open: one call probes",
};
