// One pool in full: its state and what to do first, then who waits and who uses the quota, then the
// rest.

import { Agents, agentText } from "./agents.js";
import { Burn, Slots } from "./burn.js";
import { Reasons, causeOfPause, otherRemarks, summary } from "./diagnosis.js";
import { attr, h, keyed, put, show } from "./dom.js";
import { Leases, Proxied, disable } from "./leases.js";
import { Limits, MEANINGS } from "./limits.js";
import { LAST_KNOWN, chosenAgent } from "./listing.js";
import { CalmText } from "./order.js";
import { Cursor } from "./plot.js";
import { Queue, TurnedAway } from "./queue.js";
import { Recent } from "./recent.js";
import { Refusals } from "./refusals.js";
import { stateOf } from "./state.js";
import { turnedAwaySince, turnedText } from "./turned.js";
import { count, dollars, joined, listed, markOld, percent, plural, time } from "./words.js";

// On a wide screen the limits and the plots stand beside the lists of agents and calls.
const wide = matchMedia("(min-width: 105rem)");
const MINUTES = 60_000;

export class PoolView {
	constructor(name, act) {
		this.name = name;
		this.title = h("h2", { text: name, title: name, tabindex: -1 });
		this.state = h("span", { class: "pill" });
		this.counts = h("p", { class: "counts" });
		this.blocked = h("p", { class: "blocked", id: "blocked" });
		this.pause = h("button", { text: "Pause…", onclick: () => act.pause(name) });
		this.resume = h("button", { text: "Resume", onclick: () => act.resume(name) });
		this.answers = h("dl", { class: "answers" }, ...["Now", "Ends", "Do", "Agent"].map((head) =>
			h("div", {}, h("dt", { text: head }), h("dd"))));
		this.notices = h("ul", { class: "notices" });
		this.limits = new Limits();
		const cursor = new Cursor();
		this.burn = new Burn(cursor);
		this.slots = new Slots(cursor);
		this.queue = new Queue();
		this.turned = new TurnedAway();
		this.leases = new Leases(act.settle);
		this.agents = new Agents();
		this.proxied = new Proxied();
		this.refusals = new Refusals();
		this.recent = new Recent();
		this.reasons = new Reasons();
		this.advice = new CalmText();
		this.settings = h("dl", { class: "settings" });
		this.header = h("header", { class: "poolhead" },
			h("div", {}, this.title, this.state, this.counts),
			h("div", { class: "acts" }, this.blocked, this.pause, this.resume));
		this.foot = h("section", {}, h("h3", { text: "Settings" }), this.settings,
			h("details", { class: "meanings" }, h("summary", { text: "Glossary" }),
				h("dl", {}, ...Object.entries(MEANINGS).map(([word, text]) =>
					h("div", {}, h("dt", { text: word }), h("dd", { text }))))));
		this.root = h("article", { class: "pool" });
		this.arrange();
		wide.onchange = () => this.arrange();
	}

	// The order in the document is the order on the screen, so that Tab follows the eye.
	arrange() {
		const div = (kind, ...parts) => h("div", { class: kind }, ...parts.map(({ root }) => root));
		const plots = h("div", { class: "plots" }, this.burn.root, this.slots.root);
		const { queue, turned, agents, limits, leases, proxied, refusals, recent } = this;
		this.root.replaceChildren(this.header, this.answers, this.notices, queue.root,
			turned.root, ...(wide.matches ? [h("div", { class: "split" },
				div("column", agents, leases, proxied, recent),
				div("column", limits, { root: plots }, refusals, { root: this.foot }))]
				: [agents.root, div("pair", limits, { root: plots }), leases.root, proxied.root,
					div("pair", refusals, recent), this.foot]));
	}

	// `known` is the pool as it was before the store went away, `lastRead` when the store was read
	// last and `now` the time of its clock, if the figures are old.
	update(pool, { history, throttles, recent, proxied, rows, isStoreDown, blocked, known, lastRead, now,
		priorities }) {
		this.pool = pool;
		const isOld = lastRead !== null;
		markOld(isOld && !pool.cut_off ? lastRead : null);
		const paused = causeOfPause(pool, throttles.events);
		const state = stateOf(pool, isStoreDown);
		const turned = turnedAwaySince(recent.events, pool.pool, Date.parse(pool.at) - 60 * MINUTES);
		this.answer([...summary(pool, { isStoreDown, lastRead, paused, turned: this.turnedNow(pool, recent),
			shadowed: shadowText(pool, recent.events), reasons: this.reasons.of(pool.tickets[0]) })],
		agentText(pool, chosenAgent(), paused), state);
		const remarks = isStoreDown ? [] : otherRemarks(pool, state[1]);
		keyed(this.notices, remarks, ({ level, head }) => level + head,
			({ level, head }) => h("li", { class: level }, h("b", { text: `${head} ` }), h("span")),
			(item, { text, ends }) => put(item.children[1], joined(" Ends ", text, ends && `${ends}.`)));
		show(this.notices, this.notices.firstChild !== null);
		// All figures are of one instant: of the last reading, or of this daemon's own calls now.
		const whose = pool.cut_off ? "this daemon only" : isOld ? LAST_KNOWN : "";
		const read = { now: isOld ? now : Date.parse(pool.at), isOld };
		this.queue.update(pool, paused, isStoreDown);
		this.turned.update(pool, recent, isStoreDown);
		this.limits.update(pool, known?.limits, whose);
		this.burn.update(pool, history, recent.events, read);
		this.slots.update(pool, history, recent.events, read);
		this.proxied.update(pool, proxied);
		this.refusals.update(pool, throttles);
		this.recent.update(pool, recent);
		this.head(pool, state);
		this.configured(pool);
		this.agents.update(pool, rows, turned, (name) => priorities.of(pool.pool, name));
		this.leases.update(pool, blocked);
		for (const list of [this.agents, this.leases, this.queue]) list.mark(whose);
		this.block(blocked);
	}

	// Calls that were not admitted since the pause or stop began, else in the last minutes.
	turnedNow({ pool, at, pause, trouble, terminal }, { events }) {
		const began = pause?.at ?? ((pause || terminal) && trouble.incident?.at);
		const since = began ? Date.parse(began) : Date.parse(at) - 5 * MINUTES;
		const text = turnedText(turnedAwaySince(events, pool, since));
		return began ? text : text.replace(/\.$/, " in the last 5 min.");
	}

	// Why nothing can be done to the pool; empty if it can.
	block(reason) {
		for (const button of [this.pause, this.resume]) {
			disable(button, reason);
			attr(button, "aria-describedby", reason ? "blocked" : null);
		}
		put(this.blocked, reason && `Not possible: ${reason}`);
		show(this.blocked, reason !== "");
		this.leases.block(reason);
	}

	head({ in_flight: flying, waiting, money, pause, terminal, cut_off: offline }, [level, word]) {
		attr(this.state, "class", `pill sign ${level}`);
		put(this.state, word);
		// What is empty has its place here, and no section.
		put(this.counts, joined(" · ", `${flying > 0 ? count(flying) : "none"} in flight${
			offline ? " through this daemon" : ""}`,
			!word.endsWith("waiting") && `${waiting > 0 ? count(waiting) : "none"} waiting`,
			this.refusals.isNone && this.refusals.noneText,
			money?.spent_micro_usd > 0 && `${dollars(money.spent_micro_usd)} in the last day${
				money.wasted_micro_usd > 0
					? `, ${dollars(money.wasted_micro_usd)} of it for refused and failed calls` : ""}`));
		// The button that has the focus is not taken away from under it.
		const isHeld = pause !== null || terminal !== null;
		if (!isHeld && document.activeElement === this.resume) this.pause.focus();
		show(this.resume, isHeld);
	}

	answer([now, ends, advice, head = "Ends", kind = null], agent, [level]) {
		attr(this.answers, "class", `answers ${level}`);
		put(this.answers.children[1].firstChild, head);
		attr(this.answers.children[1], "class", kind);
		[now, ends, this.advice.of(advice, `${level} ${head} ${kind}`), agent].forEach((text, at) => {
			const line = this.answers.children[at];
			show(line, text !== "");
			put(line.lastChild, text);
		});
	}

	configured({ provider, within, zone, breaker, margin_per_mille: margin, margin_auto: auto, enforce,
		origin }) {
		const by = { file: "a file", code: "code or flags", none: "no configuration yet" };
		const facts = [
			["provider", provider],
			["within", within],
			["mode", enforce ? "enforced" : "shadow: calls are never delayed"],
			["zone", zone],
			["breaker", breaker.replace("_", "-")],
			["margin", `${percent(margin)}${auto ? ", automatic" : ""}`],
			["configured by", joined(", ", origin.learned ? "learned from responses"
				: by[origin.source] ?? origin.source,
				origin.version !== null && `version ${count(origin.version)}`,
				origin.changes > 0 && `${plural(origin.changes, "change")} since`)],
			["written", origin.written && time(origin.written)],
		].filter(([, text]) => text);
		keyed(this.settings, facts, ([name]) => name, ([name]) => h("div", {}, h("dt", { text: name,
			title: MEANINGS[name] }), h("dd")), (fact, [, text]) => put(fact.lastChild, text));
	}
}

// `In the last hour 765 calls would have waited (blog and data).`
function shadowText({ pool, at, enforce }, events) {
	if (enforce) return "";
	const since = Date.parse(at) - 60 * MINUTES;
	const found = events.filter((event) => event.kind === "shadow" && event.pool === pool
		&& Date.parse(event.at) > since);
	const names = [...new Set(found.map(({ agent }) => agent))];
	return found.length === 0 ? "In the last hour no call would have waited."
		: `In the last hour ${plural(found.length, "call")} would have waited (${names.length > 3
			? plural(names.length, "agent") : listed(names)}).`;
}
