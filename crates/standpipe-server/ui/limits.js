// The limits of a pool as bars. Calls in flight at once are slots and have a place of their own: a
// share of a rate and a number of slots do not compare.

import { attr, h, keyed, put, show } from "./dom.js";
import { amount, length, limitName, listed, percent, whole } from "./words.js";

// So many slots are drawn one by one.
const MOST_SLOTS = 60;

export class Limits {
	none = h("p", { class: "none" });
	list = h("ul", { class: "limits" });
	root = h("section", {}, h("h3", { text: "Limits" }), this.none, this.list);

	update({ limits, trouble, waiting }) {
		put(this.none, trouble.cautious === null
			? "No limits are known yet. State them in standpipe.toml or with --limit."
			: "Not known yet: they are learned from the provider’s answers.");
		show(this.none, limits.length === 0);
		const ordered = [...limits].sort((a, b) => isSlots(a) - isSlots(b));
		keyed(this.list, ordered, (of) => of.limit, gauge, (item, of) => measure(item, of, waiting > 0));
	}
}

const isSlots = ({ kind }) => kind === "parallel";

// What is used, what calls in flight hold, what is usable, and how large the limit is.
function gauge(limit) {
	return h("li", { class: isSlots(limit) ? "apart" : "rate" },
		h("div", { class: "limithead" }, h("b", { text: limitName(limit.limit) }), h("span")),
		h("div", { role: "meter", "aria-label": limitName(limit.limit), "aria-valuemin": 0 }), h("dl"));
}

function measure(item, limit, isWaiting) {
	const [head, bar, list] = item.children;
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
	keyed(list, facts(limit, text), ([name]) => name,
		([name]) => h("div", {}, h("dt", { text: name, title: MEANINGS[name] }), h("dd")),
		(fact, [, words]) => put(fact.lastChild, words));
}

// What is left, and for whom if floors keep all of it.
function leftOf({ left, used, held, effective, kept = [] }, text) {
	// After a loss of the ledger calls in flight are unknown, and all of it counts as used.
	if (left === 0) return used + held < effective ? "none usable now" : "full";
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
	keyed(bar, parts, ([kind]) => kind, ([kind]) => h("i", { class: kind }), (span, [, from, size]) => {
		span.style.left = `${100 * from / all}%`;
		if (size !== undefined) span.style.width = `${100 * size / all}%`;
	});
}

// The words of this page, for the tooltips and for the list at its end.
export const MEANINGS = {
	used: "counted in the current period",
	held: "reserved by calls in flight; what they do not use is free again when they end",
	charged: "what a token bucket still has to refill",
	kept: "what floors keep for other agents; it is lent out while they do not call",
	usable: "the limit less the margin: what Standpipe admits now",
	margin: "the part of a limit that is left unused; it shrinks while the provider accepts all calls",
	"all free": "when nothing of the limit is in use any more, if no call comes",
	zone: "how much is left: green, amber (calls of lower priority are spaced out) or red "
		+ "(background waits)",
	breaker: "closed: normal. Pre-emptive: the quota will run out at this rate, and callers are "
		+ "advised to request less. Open: paused or stopped. Half-open: one call probes",
};

function facts(of, text) {
	const free = of.full_again_ms;
	const [isBucket, isRate] = [of.kind === "bucket", !isSlots(of)];
	const period = ` ${limitName(of.limit).split(" ").slice(1).join(" ")}`;
	return [
		[isBucket ? "charged" : "used", isRate && text(of.used)],
		[isRate ? "held" : "in flight", text(of.held)],
		["kept", (of.kept ?? []).map((one) => `${text(one.units)} for ${one.agent}`).join(", ")],
		["of it outside", of.outside > 0 && text(of.outside)],
		["used by others", of.by_others > 0 && text(of.by_others)],
		["usable", isRate && text(Math.min(of.effective, of.ramp?.usable ?? of.effective))],
		["ramp", of.ramp && `${percent(of.ramp.per_mille)} of ${text(of.effective)}, more in ${
			whole(of.ramp.until_ms)}`],
		["refills", isBucket && text(of.refill ?? of.amount) + period],
		["limit", text(of.amount)],
		["margin", of.margin_per_mille !== null && percent(of.margin_per_mille)],
		["burst", of.burst !== null && of.burst !== of.amount && text(of.burst)],
		["by the provider", of.learned !== null && text(of.learned)],
		["all free", free === 0 || of.used + of.held === 0 ? "now"
			: free === null ? "when calls end" : `in ${whole(free)}`],
		["pace", of.pace_ms !== null && `one per ${length(of.pace_ms)}`],
		["next", of.next_grant_ms > 0 && `in ${length(of.next_grant_ms)}`],
	].filter(([, words]) => words);
}
