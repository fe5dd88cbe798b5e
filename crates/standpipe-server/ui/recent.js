// The journal of the last hour: events by kind and agent. What comes often is one line, so that it
// does not hide what matters.

import { h, keyed, put, setTime, show } from "./dom.js";
import { GROUPS, eventText, gravity, groupText, kindOf } from "./events.js";
import { count, time } from "./words.js";

// The most agents that can be chosen, and the lines that are shown at first.
const MOST_AGENTS = 50;
const MOST_LINES = 40;
const FIRST_LINES = 12;

// What comes with every call is one line from one of the causes to the next; of the last kinds there
// is one line in all.
const REPEATED = ["wait", "wait refused", "shadow", "refuse"];
const CAUSES = ["throttle", "stop", "pause", "resume", "config", "store"];
const ONE_LINE = ["margin", "outside"];
// A wait too short to matter.
const SHORT = 1_000;

export class Recent {
	isAll = false;
	list = h("ol", { class: "events", tabindex: 0, "aria-label": "Events, latest first" });
	none = h("p", { class: "none" });
	older = h("p", { class: "more", hidden: "" });
	more = h("button", { onclick: () => {
		this.isAll = !this.isAll;
		this.draw();
	} });
	group = h("select", { "aria-label": "Kind of events" });
	agent = h("select", { "aria-label": "Agent of events" });
	filters = h("div", { class: "filters" }, this.group, this.agent);
	root = h("section", { class: "recent" },
		h("header", {}, h("h3", { text: "Events, last hour" }), this.filters), this.none, this.list,
		this.more, this.older);

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
			&& Date.parse(event.at) > since && !isShort(event)).reverse();
		const groups = GROUPS.filter(([, kinds]) => this.mine.some((of) => kinds.includes(kindOf(of))));
		choices(this.group, "all kinds", groups.map(([name]) => name));
		const agents = [...new Set(this.mine.map(({ agent }) => agent).filter((name) => name))].sort();
		choices(this.agent, "all agents", agents.slice(0, MOST_AGENTS));
		show(this.agent, agents.length > 0 || this.agent.value !== "");
		this.draw();
	}

	draw() {
		const kinds = GROUPS.find(([name]) => name === this.group.value)?.[1];
		const found = this.mine.filter((event) => (!kinds || kinds.includes(kindOf(event)))
			&& (this.agent.value === "" || event.agent === this.agent.value));
		const lines = combined(found);
		const most = this.isAll ? MOST_LINES : FIRST_LINES;
		put(this.none, !this.isRead ? "Reading the journal…" : this.mine.length > 0
			? "No event of this choice." : "None.");
		show(this.none, lines.length === 0);
		show(this.list, lines.length > 0);
		show(this.filters, this.mine.length > 1 || this.group.value + this.agent.value !== "");
		this.root.classList.toggle("empty", this.mine.length === 0);
		keyed(this.list, lines.slice(0, most), ({ key }) => key, ({ event }) => {
			const when = h("time");
			setTime(when, event.at, time(event.at));
			return h("li", { class: gravity(event) }, when, h("span"));
		}, (item, line) => put(item.lastChild, textOf(line)));
		show(this.more, lines.length > FIRST_LINES + 1);
		put(this.more, this.isAll ? "Show fewer"
			: `Show ${count(Math.min(lines.length, MOST_LINES) - FIRST_LINES)} older`);
		const older = this.isAll ? lines.length - MOST_LINES : 0;
		put(this.older, `and ${count(older)} older ones: standpipe events`);
		show(this.older, older > 0);
	}
}

const isShort = (event) => event.kind === "wait" && ["admitted", "continued"].includes(event.ended)
	&& (event.longest_ms ?? event.waited_ms) < SHORT;

// The choices of a filter. What is chosen stays, even if it is in no event any more.
function choices(select, all, names) {
	const chosen = select.value;
	const wanted = chosen === "" || names.includes(chosen) ? names : [...names, chosen];
	keyed(select, ["", ...wanted], String, (name) => h("option", { value: name, text: name || all }));
}

// Events as lines, the latest first: repeats in a row are one line, and so is what comes with every
// call of a busy pool, of any agent, between two events that may be its cause. Refusals with
// different reasons are different lines.
function combined(events) {
	const lines = [];
	const whole = new Map();
	let open = new Map();
	for (const event of events) {
		const kind = kindOf(event);
		if (CAUSES.includes(kind)) open = new Map();
		const group = kind === "refuse" ? `${kind} ${event.reason} ${event.limit}` : kind;
		const text = eventText(event);
		const last = lines.at(-1);
		const line = whole.get(kind) ?? open.get(group) ?? (last?.text === text ? last : null);
		if (line) {
			line.all.push(event);
			continue;
		}
		const made = { event, kind, text, all: [event], key: `${kind} ${event.key}` };
		if (ONE_LINE.includes(kind)) whole.set(kind, made);
		if (REPEATED.includes(kind)) open.set(group, made);
		lines.push(made);
	}
	return lines;
}

const textOf = ({ event, all }) => (all.length > 1 ? groupText(all) : eventText(event));
