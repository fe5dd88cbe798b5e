// One pool in full: its state and what to do first, then who waits and who uses the quota, then the
// rest.

import { causeOfPause, otherRemarks, stateOf, summary } from "./diagnosis.js";
import { attr, h, keyed, put, setTime, show } from "./dom.js";
import { Limits, MEANINGS } from "./limits.js";
import { Agents, Leases, Proxied, Queue } from "./listings.js";
import { Burn, Slots } from "./plot.js";
import { Refusals } from "./refusals.js";
import { count, dollars, eventText, joined, percent, plural, time,
	waitsText } from "./words.js";

export class PoolView {
	constructor(name, act) {
		this.name = name;
		this.title = h("h2", { text: name, tabindex: -1 });
		this.state = h("span", { class: "pill" });
		this.counts = h("p", { class: "counts" });
		this.pause = h("button", { text: "Pause…", onclick: () => act.pause(name) });
		this.resume = h("button", { text: "Resume", onclick: () => act.resume(this.pool) });
		this.answers = h("dl", { class: "answers" }, ...["Now", "Ends", "Do"].map((head) =>
			h("div", {}, h("dt", { text: head }), h("dd"))));
		this.notices = h("ul", { class: "notices" });
		this.limits = new Limits();
		this.burn = new Burn();
		this.slots = new Slots();
		this.queue = new Queue();
		this.leases = new Leases(act.settle);
		this.agents = new Agents();
		this.proxied = new Proxied();
		this.refusals = new Refusals();
		this.recent = new Recent();
		this.settings = h("dl", { class: "settings" });
		this.root = h("article", { class: "pool" },
			h("header", { class: "poolhead" }, h("div", {}, this.title, this.state, this.counts),
				h("div", { class: "acts" }, this.pause, this.resume)),
			this.answers, this.notices, this.queue.root, this.agents.root,
			h("div", { class: "pair" }, this.limits.root,
				h("div", { class: "plots" }, this.burn.root, this.slots.root)),
			this.leases.root, this.proxied.root,
			h("div", { class: "pair" }, this.refusals.root, this.recent.root),
			h("section", {}, h("h3", { text: "Settings" }), this.settings,
				h("details", { class: "meanings" }, h("summary", { text: "What the words mean" }),
					h("dl", {}, ...Object.entries(MEANINGS).map(([word, text]) =>
						h("div", {}, h("dt", { text: word }), h("dd", { text })))))));
	}

	update(pool, { history, throttles, recent, proxied, rows, isStoreDown }) {
		this.pool = pool;
		const paused = causeOfPause(pool, pool.terminal ? throttles.events : recent.events);
		const state = stateOf(pool, isStoreDown);
		this.head(pool, state);
		this.answer(summary(pool, { isStoreDown, paused }), state);
		keyed(this.notices, otherRemarks(pool, state), ([grave, word]) => grave + word,
			([grave, word]) => h("li", { class: grave }, h("b", { text: `${word} ` }), h("span")),
			(item, [, , text, ends]) => put(item.children[1], joined(" Ends ", text, ends && `${ends}.`)));
		show(this.notices, this.notices.firstChild !== null);
		this.queue.update(pool, paused, isStoreDown);
		this.agents.update(pool, rows);
		this.limits.update(pool);
		this.burn.update(pool, history);
		this.slots.update(pool, history);
		this.leases.update(pool);
		this.proxied.update(pool, proxied);
		this.refusals.update(pool, throttles);
		this.recent.update(pool, recent);
		this.configured(pool);
	}

	head({ in_flight: flying, waiting, money, pause, terminal }, [level, word]) {
		attr(this.state, "class", `pill sign ${level}`);
		put(this.state, word);
		put(this.counts, joined(" · ", `${count(flying)} in flight`, `${count(waiting)} waiting`,
			money && `${dollars(money.spent_micro_usd)} in the last day${money.wasted_micro_usd > 0
				? `, ${dollars(money.wasted_micro_usd)} of it on failed calls` : ""}`));
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
	root = h("section", { class: "recent" }, h("h3", { text: "Events, last hour" }), this.none, this.list);

	update({ pool, at }, { events, version }) {
		const mark = `${version} ${at.slice(0, 16)}`;
		if (this.mark === mark) return;
		this.mark = mark;
		const since = Date.parse(at) - 3_600_000;
		const mine = events.filter((event) => (event.pool === pool || event.pool === "*")
			&& Date.parse(event.at) > since).reverse();
		put(this.none, version ? "None." : "Reading the journal…");
		show(this.none, mine.length === 0);
		show(this.list, mine.length > 0);
		this.root.classList.toggle("empty", mine.length === 0);
		keyed(this.list, combined(mine).slice(0, MOST_LINES), ({ event }) => event.key, ({ event }) => {
			const when = h("time");
			setTime(when, event.at, time(event.at));
			return h("li", {}, when, h("span"));
		}, (item, line) => put(item.lastChild, lineText(line)));
	}
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
