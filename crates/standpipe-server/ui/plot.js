// Drawings: the burn rate over ten minutes, and the provider's refusals over eight days. Each has
// a table too, for those who do not see it.

import { Table, attr, h, keyed, put, s, show, tell } from "./dom.js";
import { KINDS, amount, count, dayOf, plural, time } from "./words.js";

const SPAN = 600_000;
const DAY = 86_400_000;
const [LEFT, RIGHT, TOP, BOTTOM] = [42, 8, 12, 22];

// What snapshots said of every limit.
export class History {
	pools = new Map();
	every = 2_000;

	seed({ every_ms: every, pools }) {
		this.every = every;
		this.pools = new Map(pools.map(({ pool, limits }) => [pool,
			new Map(limits.map(({ limit, samples }) => [limit, samples]))]));
	}

	add(snapshot) {
		this.pools = new Map(snapshot.pools.map(({ pool, at, limits }) => {
			const now = Date.parse(at);
			return [pool, new Map(limits.map((limit) => {
				const samples = this.of(pool, limit.limit).filter(([then]) => then >= now - SPAN);
				// A little early is on time: snapshots do not come to the millisecond.
				if (!(samples.at(-1)?.[0] > now - this.every + 200)) samples.push(sample(now, limit));
				return [limit.limit, samples];
			}))];
		}));
	}

	of(pool, limit) {
		return this.pools.get(pool)?.get(limit) ?? [];
	}
}

const sample = (at, { used, held, effective }) => [at, used + held, effective];
const part = ([, taken, effective]) => taken / Math.max(1, effective);
const percentOf = (point) => `${Math.round(part(point) * 100)} %`;

// A drawing that is as wide as its place.
class Plot {
	constructor(high, kind, title, ...below) {
		this.high = high;
		this.svg = s("svg", { role: "img", class: "plot" });
		this.said = h("p");
		this.drawn = h("div", {}, this.svg, ...below);
		this.root = h("section", { class: kind }, h("h3", { text: title }), this.said, this.drawn);
		new ResizeObserver(([{ contentRect: { width } }]) => {
			this.wide = Math.max(200, Math.round(width));
			this.draw();
		}).observe(this.root);
	}

	draw() {
		if (!this.wide || this.drawn.hidden) return;
		attr(this.svg, "viewBox", `0 0 ${this.wide} ${this.high}`);
		attr(this.svg, "height", this.high);
		this.svg.replaceChildren(...this.shapes());
	}

	x = (of) => LEFT + (this.wide - LEFT - RIGHT) * of;
	y = (of) => TOP + (this.high - TOP - BOTTOM) * (1 - of);

	level(of, text, kind = "rule") {
		return [s("path", { class: kind, d: `M${LEFT} ${this.y(of)}H${this.wide - RIGHT}` }),
			s("text", { x: LEFT - 6, y: this.y(of) + 4, class: "end", text })];
	}

	tick(of, text, anchor) {
		return [s("path", { class: "rule", d: `M${this.x(of)} ${this.high - BOTTOM}v4` }),
			s("text", { x: this.x(of), y: this.high - 5, class: anchor, text })];
	}
}

// The burn rate of one pool: a line per limit, in parts of that limit, and the limit itself.
export class Burn extends Plot {
	constructor() {
		const legend = h("ul", { class: "legend" });
		const table = new Table("Taken of each limit, last 10 minutes",
			[["limit"], ["now", "n"], ["highest", "n"], ["usable", "n"]]);
		super(190, "burn", "Burn rate against the limit", legend,
			h("details", {}, h("summary", { text: "The same as a table" }), table.root));
		[this.legend, this.table] = [legend, table];
		put(this.said, "No limits are known yet, so there is no rate.");
	}

	update({ pool, at, limits }, history) {
		this.now = Date.parse(at);
		// Lines are told apart by colour and by dashes; from the seventh on they begin anew.
		this.lines = limits.map((limit, n) => {
			const points = [...history.of(pool, limit.limit), sample(this.now, limit)];
			const highest = points.reduce((best, point) => (part(point) > part(best) ? point : best));
			return { limit, ink: `line ink${n % 6}`, points, highest, last: points.at(-1) };
		});
		show(this.said, limits.length === 0);
		show(this.drawn, limits.length > 0);
		this.draw();
		const name = (line) => line.limit.limit;
		keyed(this.legend, this.lines, name, ({ ink }) => h("li", {},
			s("svg", { class: "key", viewBox: "0 0 24 8" }, s("path", { class: ink, d: "M0 4H24" })),
			h("span"), h("b")), (item, line) => {
			put(item.children[1], name(line));
			put(item.children[2], percentOf(line.last));
		});
		this.table.rows(this.lines, name, null, ({ limit, highest, last }) => {
			const of = (point) => `${amount(limit.unit, point[1])} (${percentOf(point)})`;
			return [limit.limit, of(last), of(highest), amount(limit.unit, limit.effective)];
		});
		attr(this.svg, "aria-label", `Taken of each limit over the last 10 minutes. ${
			this.lines.map((line) => `${name(line)}: now ${percentOf(line.last)}, highest ${
				percentOf(line.highest)}`).join(". ")}.`);
	}

	shapes() {
		const most = Math.max(...this.lines.map(({ highest }) => part(highest)));
		const top = Math.max(1.2, most * 1.05);
		const step = top < 2.5 ? 0.5 : Math.ceil(top / 5);
		const drawn = [];
		for (let of = 0; of <= top; of += step) drawn.push(...this.level(of / top, `${of * 100} %`));
		drawn.push(...this.level(1 / top, "", "bound"), s("text",
			{ x: LEFT + 4, y: this.y(1 / top) - 5, class: "start", text: "the limit" }));
		for (const ago of this.wide < 560 ? [10, 5, 0] : [10, 8, 6, 4, 2, 0]) {
			const anchor = { 0: "end", 10: "start" }[ago];
			drawn.push(...this.tick(1 - ago / 10, ago === 0 ? "now" : `${ago} min ago`, anchor));
		}
		for (const { points, ink } of this.lines) {
			const steps = points.filter(([at]) => at >= this.now - SPAN).map((point) =>
				`${this.x(1 - (this.now - point[0]) / SPAN).toFixed(1)} ${
					this.y(part(point) / top).toFixed(1)}`);
			drawn.push(s("path", { class: ink, d: `M${steps.join("L")}` }));
		}
		return drawn;
	}
}

const DAYS = 8;
const SLOTS = DAYS * 6;
const KIND = Object.keys(KINDS);
const kindOf = ({ about }) => Math.max(0, KIND.indexOf(about));

// The refusals of one pool: when, of which kind, of whom.
export class Refusals extends Plot {
	constructor() {
		const table = new Table("By agent and kind",
			[["agent", "name"], ...KIND.map((kind, n) => [KINDS[kind][0], `n kind${n}`]), ["last", "n"]]);
		super(110, "refusals", "Refusals by the provider (429s), last 8 days", table.root);
		this.table = table;
	}

	update({ pool, at }, journal) {
		const now = Date.parse(at);
		const mark = `${journal.version} ${Math.floor(now / 60_000)}`;
		if (this.mark === mark) return;
		this.mark = mark;
		this.end = Math.ceil(now * SLOTS / DAYS / DAY) * DAY * DAYS / SLOTS;
		this.events = journal.events.filter((event) =>
			event.pool === pool && Date.parse(event.at) > now - DAYS * DAY);
		const agents = new Map();
		for (const event of this.events) {
			const name = event.agent ?? "not said";
			const of = agents.get(name) ?? { name, kinds: KIND.map(() => 0) };
			of.kinds[kindOf(event)] += 1;
			of.last = event.at;
			agents.set(name, of);
		}
		show(this.drawn, agents.size > 0);
		put(this.said, !journal.version ? "Reading the journal…" : agents.size === 0
			? "None: the provider has not said no." : `${plural(this.events.length, "refusal")} of ${
				plural(agents.size, "agent")}${journal.isCut ? "; older ones are left out" : ""}.`);
		this.draw();
		const latest = [...agents.values()].sort((a, b) => (a.last < b.last ? 1 : -1)).slice(0, 50);
		this.table.rows(latest, ({ name }) => name, (row) => row.lastChild.append(h("time")),
			({ name, kinds, last }, row) => {
				tell(row.lastChild.firstChild, last, time(last));
				return [name, ...kinds.map((n) => (n > 0 ? count(n) : "")), null];
			});
	}

	shapes() {
		const slots = Array.from({ length: SLOTS }, () => KIND.map(() => 0));
		for (const event of this.events) {
			const ago = Math.floor((this.end - 1 - Date.parse(event.at)) * SLOTS / DAYS / DAY);
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
					width: (this.wide - LEFT - RIGHT) / SLOTS - 1, y: this.y((below + n) / top),
					height: this.y(below / top) - this.y((below + n) / top) }));
				below += n;
			});
		});
		const midnight = new Date(this.end);
		midnight.setHours(0, 0, 0, 0);
		for (let day = 0; day < DAYS; day += 1, midnight.setDate(midnight.getDate() - 1)) {
			const of = 1 - (this.end - midnight) / DAYS / DAY;
			if (of > 0 && of < 0.92 && (this.wide > 500 || day % 2 === 0)) {
				drawn.push(...this.tick(of, dayOf(midnight), "start"));
			}
		}
		attr(this.svg, "aria-label",
			`Refusals in spans of four hours, at most ${count(top)}; the table below has the figures.`);
		return drawn;
	}
}
