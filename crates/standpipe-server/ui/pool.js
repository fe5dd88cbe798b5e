// One pool in full: its state and what to do first, then who waits and who uses the quota, then the
// rest.

import { causeOfPause, otherRemarks, stateOf, summary } from "./diagnosis.js";
import { attr, h, keyed, put, setTime, show } from "./dom.js";
import { Limits, MEANINGS } from "./limits.js";
import { Agents, Leases, Proxied, Queue, disable } from "./listings.js";
import { Burn, Cursor, Slots } from "./plot.js";
import { Refusals } from "./refusals.js";
import { GROUPS, count, dollars, eventText, gravity, joined, percent, plural, time, waitsText }
	from "./words.js";

// On a wide screen the limits and the plots stand beside the lists of agents and calls.
const wide = matchMedia("(min-width: 105rem)");

export class PoolView {
	constructor(name, act) {
		this.name = name;
		this.title = h("h2", { text: name, tabindex: -1 });
		this.state = h("span", { class: "pill" });
		this.counts = h("p", { class: "counts" });
		this.blocked = h("p", { class: "blocked", id: "blocked" });
		this.pause = h("button", { text: "Pause…", onclick: () => act.pause(name) });
		this.resume = h("button", { text: "Resume", onclick: () => act.resume(this.pool) });
		this.answers = h("dl", { class: "answers" }, ...["Now", "Ends", "Do"].map((head) =>
			h("div", {}, h("dt", { text: head }), h("dd"))));
		this.notices = h("ul", { class: "notices" });
		this.limits = new Limits();
		const cursor = new Cursor();
		this.burn = new Burn(cursor);
		this.slots = new Slots(cursor);
		this.queue = new Queue();
		this.leases = new Leases(act.settle);
		this.agents = new Agents();
		this.proxied = new Proxied();
		this.refusals = new Refusals();
		this.recent = new Recent();
		this.settings = h("dl", { class: "settings" });
		this.header = h("header", { class: "poolhead" },
			h("div", {}, this.title, this.state, this.counts),
			h("div", { class: "acts" }, this.blocked, this.pause, this.resume));
		this.foot = h("section", {}, h("h3", { text: "Settings" }), this.settings,
			h("details", { class: "meanings" }, h("summary", { text: "What the words mean" }),
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
		const { queue, agents, limits, leases, proxied, refusals, recent } = this;
		this.root.replaceChildren(this.header, this.answers, this.notices, queue.root,
			...(wide.matches ? [h("div", { class: "split" },
				div("column", agents, leases, proxied, recent),
				div("column", limits, { root: plots }, refusals, { root: this.foot }))]
				: [agents.root, div("pair", limits, { root: plots }), leases.root, proxied.root,
					div("pair", refusals, recent), this.foot]));
	}

	update(pool, { history, throttles, recent, proxied, rows, isStoreDown, blocked }) {
		this.pool = pool;
		const paused = causeOfPause(pool, throttles.events);
		const state = stateOf(pool, isStoreDown);
		this.head(pool, state);
		this.answer(summary(pool, { isStoreDown, paused }), state);
		keyed(this.notices, otherRemarks(pool, state), ({ level, head }) => level + head,
			({ level, head }) => h("li", { class: level }, h("b", { text: `${head} ` }), h("span")),
			(item, { text, ends }) => put(item.children[1], joined(" Ends ", text, ends && `${ends}.`)));
		show(this.notices, this.notices.firstChild !== null);
		this.queue.update(pool, paused, isStoreDown);
		this.agents.update(pool, rows);
		this.limits.update(pool);
		this.burn.update(pool, history, recent.events);
		this.slots.update(pool, history, recent.events);
		this.leases.update(pool, blocked);
		this.proxied.update(pool, proxied);
		this.refusals.update(pool, throttles);
		this.recent.update(pool, recent);
		this.configured(pool);
		this.block(blocked);
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

	head({ in_flight: flying, waiting, money, pause, terminal }, [level, word]) {
		attr(this.state, "class", `pill sign ${level}`);
		put(this.state, word);
		put(this.counts, joined(" · ", `${count(flying)} in flight`, `${count(waiting)} waiting`,
			money?.spent_micro_usd > 0 && `${dollars(money.spent_micro_usd)} in the last day${
				money.wasted_micro_usd > 0
					? `, ${dollars(money.wasted_micro_usd)} of it for refused and failed calls` : ""}`));
		// The button that has the focus is not taken away from under it.
		const isHeld = pause !== null || terminal !== null;
		if (!isHeld && document.activeElement === this.resume) this.pause.focus();
		show(this.resume, isHeld);
	}

	answer(texts, [level]) {
		attr(this.answers, "class", `answers ${level}`);
		texts.forEach((text, at) => {
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
			["configured by", joined(", ", by[origin.source] ?? origin.source,
				origin.version !== null && `version ${count(origin.version)}`,
				origin.changes > 0 && `${plural(origin.changes, "change")} since`)],
			["written", origin.written && time(origin.written)],
		].filter(([, text]) => text);
		keyed(this.settings, facts, ([name]) => name, ([name]) => h("div", {}, h("dt", { text: name,
			title: MEANINGS[name] }), h("dd")), (fact, [, text]) => put(fact.lastChild, text));
	}
}

export class Recent {
	list = h("ol", { class: "events", tabindex: 0, "aria-label": "Events, latest first" });
	none = h("p", { class: "none" });
	more = h("p", { class: "more" });
	group = h("select", { "aria-label": "Kind of events" });
	agent = h("select", { "aria-label": "Agent of events" });
	filters = h("div", { class: "filters" }, this.group, this.agent);
	root = h("section", { class: "recent" },
		h("header", {}, h("h3", { text: "Events, last hour" }), this.filters), this.none, this.list,
		this.more);

	constructor() {
		for (const one of [this.group, this.agent]) {
			one.addEventListener("change", () => this.draw());
		}
	}

	update({ pool, at }, { events, version }) {
		const mark = `${version} ${at.slice(0, 16)}`;
		if (this.mark === mark) return;
		this.mark = mark;
		this.isRead = version > 0;
		const since = Date.parse(at) - 3_600_000;
		this.mine = events.filter((event) => (event.pool === pool || event.pool === "*")
			&& Date.parse(event.at) > since).reverse();
		const groups = GROUPS.filter(([, kinds]) => this.mine.some(({ kind }) => kinds.includes(kind)));
		choices(this.group, "all kinds", groups.map(([name]) => name));
		const agents = [...new Set(this.mine.map(({ agent }) => agent).filter((name) => name))].sort();
		choices(this.agent, "all agents", agents.slice(0, MOST_AGENTS));
		show(this.agent, agents.length > 0 || this.agent.value !== "");
		this.draw();
	}

	draw() {
		const kinds = GROUPS.find(([name]) => name === this.group.value)?.[1];
		const found = this.mine.filter(({ kind, agent }) => (!kinds || kinds.includes(kind))
			&& (this.agent.value === "" || agent === this.agent.value));
		const lines = combined(found);
		put(this.none, !this.isRead ? "Reading the journal…" : this.mine.length > 0
			? "No event of this choice." : "None.");
		show(this.none, lines.length === 0);
		show(this.list, lines.length > 0);
		show(this.filters, this.mine.length > 1 || this.group.value + this.agent.value !== "");
		this.root.classList.toggle("empty", this.mine.length === 0);
		keyed(this.list, lines.slice(0, MOST_LINES), ({ event }) => event.key, ({ event }) => {
			const when = h("time");
			setTime(when, event.at, time(event.at));
			return h("li", { class: gravity(event) }, when, h("span"));
		}, (item, line) => put(item.lastChild, lineText(line)));
		put(this.more, lines.length > MOST_LINES
			? `and ${count(lines.length - MOST_LINES)} older ones: standpipe events` : "");
	}
}

// The most agents that can be chosen.
const MOST_AGENTS = 50;

// The choices of a filter. What is chosen stays, even if it is in no event any more.
function choices(select, all, names) {
	const chosen = select.value;
	const wanted = chosen === "" || names.includes(chosen) ? names : [...names, chosen];
	keyed(select, ["", ...wanted], String, (name) => h("option", { value: name, text: name || all }));
}

const MOST_LINES = 40;

// Repeats in a row are one line, with the time of the first. So are waits in a row, which come with
// every call of a busy pool and would hide what matters.
function combined(events) {
	const lines = [];
	for (const event of events) {
		const [text, last] = [eventText(event), lines.at(-1)];
		if (last && (last.text === text || (event.kind === "wait" && last.event.kind === "wait"))) {
			last.all.push(event);
			last.event = event;
		} else {
			lines.push({ event, text, all: [event] });
		}
	}
	return lines;
}

function lineText({ event, text, all }) {
	if (event.kind === "wait" && all.length > 1) return waitsText(all);
	return all.length > 1 ? `${text} (${all.length} times)` : text;
}
