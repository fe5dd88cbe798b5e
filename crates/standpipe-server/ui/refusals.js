// The provider's refusals over eight days: when, of which kind, of whom. The table has the figures.

import { Table, attr, h, put, s, setTime, show } from "./dom.js";
import { call } from "./feed.js";
import { Cursor, Plot } from "./plot.js";
import { KINDS, count, dayOf, joined, plural, time } from "./words.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const DAYS = 8;
const SLOTS = DAYS * 6;
const SLOT = DAYS * DAY / SLOTS;
const hours = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const hour = (at) => hours.format(at);
// The room for a day’s name, from its tick to the right.
const LABEL = 48;
const KIND = Object.keys(KINDS);
const kindOf = ({ about }) => Math.max(0, KIND.indexOf(about));

export class Refusals extends Plot {
	first = null; // the first event of the pool in the journal

	constructor() {
		const table = new Table("By agent and kind",
			[["agent", "name"], ...KIND.map((kind, n) => [KINDS[kind][0], `n kind${n}`]), ["last", "n"]]);
		super(110, "refusals", "Refusals by the provider, last 8 days", new Cursor(), table.root);
		this.table = table;
	}

	stops() {
		return Array.from({ length: SLOTS }, (_, n) => this.end - (SLOTS - n) * SLOT);
	}

	xOf = (at) => this.x(1 - (this.end - at - SLOT / 2) / DAYS / DAY);

	// What was refused in the four hours from that instant, by kind, and to whom.
	reading(at) {
		const found = this.events.filter((event) => Date.parse(event.at) >= at
			&& Date.parse(event.at) < at + SLOT);
		const lines = KIND.map((kind, n) => [KINDS[kind][0], found.filter((event) =>
			kindOf(event) === n)]).filter(([, all]) => all.length > 0).map(([name, all]) => {
			const names = [...new Set(all.map(({ agent }) => agent ?? "unknown"))];
			return `${name} ${count(all.length)}: ${joined(", ", ...names.slice(0, 3),
				names.length > 3 && `${count(names.length - 3)} more`)}`;
		});
		return [`${dayOf(at)}, ${hour(at)} to ${hour(at + SLOT)}`,
			[[lines.join(" · ") || "no refusal"]], []];
	}

	// The journal may have the pool for less than eight days.
	get noneText() {
		return this.first === null ? "no refusal recorded" : Date.parse(this.first) > Date.now()
			- (DAYS * 24 - 1) * HOUR ? `no refusal since ${time(this.first)}` : "no refusal in 8 days";
	}

	// Reads once when the journal of the pool begins.
	async #begin(pool) {
		const question = `since=${DAYS}d&pool=${encodeURIComponent(pool)}&after=0&limit=1`;
		const { events: [first] } = await call("GET", `/v1/events?${question}`)
			.catch(() => ({ events: [] }));
		this.first = first?.at ?? null;
	}

	update({ pool, at }, journal) {
		const now = Date.parse(at);
		if (this.of !== pool) this.#begin(this.of = pool);
		const seen = `${journal.version} ${Math.floor(now / 60_000)}`;
		if (this.seen === seen) return;
		this.seen = seen;
		this.end = Math.ceil(now / SLOT) * SLOT;
		this.events = journal.events.filter((event) =>
			event.pool === pool && Date.parse(event.at) > now - DAYS * DAY);
		const agents = new Map();
		for (const event of this.events) {
			const name = event.agent ?? "unknown";
			const of = agents.get(name) ?? { name, kinds: KIND.map(() => 0) };
			of.kinds[kindOf(event)] += 1;
			of.last = event.at;
			agents.set(name, of);
		}
		show(this.drawn, agents.size > 0);
		this.isNone = journal.version > 0 && agents.size === 0;
		show(this.root, !this.isNone);
		put(this.note, !journal.version ? "Reading the journal…" : `${plural(
			this.events.length, "refusal")} of ${plural(agents.size, "agent")}${journal.isCut ? "; older ones are left out" : ""}.`);
		this.draw();
		// A kind that did not occur has no column.
		KIND.forEach((_, n) => this.table.root.classList.toggle(`no${n}`,
			![...agents.values()].some(({ kinds }) => kinds[n] > 0)));
		const latest = [...agents.values()].sort((a, b) => (a.last < b.last ? 1 : -1)).slice(0, 50);
		this.table.rows(latest, ({ name }) => name, (row) => row.lastChild.append(h("time")),
			({ name, kinds, last }, row) => {
				setTime(row.lastChild.firstChild, last, time(last));
				return [name, ...kinds.map((n) => (n > 0 ? count(n) : "")), null];
			});
	}

	shapes() {
		const slots = Array.from({ length: SLOTS }, () => KIND.map(() => 0));
		for (const event of this.events) {
			const ago = Math.floor((this.end - 1 - Date.parse(event.at)) / SLOT);
			const slot = slots.at(-1 - ago);
			if (slot) slot[kindOf(event)] += 1;
		}
		const top = Math.max(1, ...slots.map((kinds) => kinds.reduce((sum, n) => sum + n)));
		const drawn = [...this.level(0, "0"), ...this.level(1, count(top))];
		slots.forEach((kinds, slot) => {
			let below = 0;
			kinds.forEach((n, kind) => {
				if (n === 0) return;
				drawn.push(s("rect", { class: `kind${kind}`, x: this.x(slot / SLOTS) + 0.5,
					width: this.width / SLOTS - 1, y: this.y((below + n) / top),
					height: this.y(below / top) - this.y((below + n) / top) }));
				below += n;
			});
		});
		const midnight = new Date(this.end);
		midnight.setHours(0, 0, 0, 0);
		for (let day = 0; day < DAYS; day += 1, midnight.setDate(midnight.getDate() - 1)) {
			const of = 1 - (this.end - midnight) / DAYS / DAY;
			const room = this.wide - this.x(of);
			if (of <= 0 || room < LABEL / 2 || (this.wide <= 500 && day % 2 === 1)) continue;
			drawn.push(...(room < LABEL ? this.tick(of, dayOf(midnight), "end", this.wide - 2)
				: this.tick(of, dayOf(midnight), "start")));
		}
		attr(this.svg, "aria-label",
			`Refusals in spans of four hours, at most ${count(top)}; the table below has the figures.`);
		return drawn;
	}
}
