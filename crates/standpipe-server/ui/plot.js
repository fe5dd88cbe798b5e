// The use of the limits over ten minutes. Rates are drawn in parts of the limit that was in force at
// the time; slots are drawn apart, as numbers of calls. A table and labels have the figures too.

import { Table, attr, h, keyed, put, s, show } from "./dom.js";
import { amount, count, limitName, share } from "./words.js";

const SPAN = 600_000;
const [LEFT, RIGHT, TOP, BOTTOM] = [42, 8, 12, 22];

// The use of every limit, as in the snapshots.
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
const percentOf = ([, taken, effective]) => share(taken, effective);

// A drawing that is as wide as its place.
export class Plot {
	constructor(high, kind, title, ...below) {
		this.high = high;
		this.svg = s("svg", { role: "img", class: "plot" });
		this.note = h("p");
		this.drawn = h("div", {}, this.svg, ...below);
		this.root = h("section", { class: kind }, h("h3", { text: title }), this.note, this.drawn);
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

	get width() {
		return this.wide - LEFT - RIGHT;
	}

	x = (of) => LEFT + this.width * of;
	y = (of) => TOP + (this.high - TOP - BOTTOM) * (1 - of);

	level(of, text, kind = "rule") {
		return [s("path", { class: kind, d: `M${LEFT} ${this.y(of)}H${this.wide - RIGHT}` }),
			s("text", { x: LEFT - 6, y: this.y(of) + 4, class: "end", text })];
	}

	tick(of, text, anchor, at = this.x(of)) {
		return [s("path", { class: "rule", d: `M${this.x(of)} ${this.high - BOTTOM}v4` }),
			s("text", { x: at, y: this.high - 5, class: anchor, text })];
	}
}

// Ten minutes of one pool, with the time below.
class Recently extends Plot {
	times() {
		const drawn = [];
		for (const ago of this.wide < 560 ? [10, 5, 0] : [10, 8, 6, 4, 2, 0]) {
			const anchor = { 0: "end", 10: "start" }[ago];
			drawn.push(...this.tick(1 - ago / 10, ago === 0 ? "now" : `${ago} min ago`, anchor));
		}
		return drawn;
	}

	line(points, level, kind) {
		const steps = points.filter(([at]) => at >= this.now - SPAN).map((point) =>
			`${this.x(1 - (this.now - point[0]) / SPAN).toFixed(1)} ${
				this.y(level(point)).toFixed(1)}`);
		return s("path", { class: kind, d: `M${steps.join("L")}` });
	}
}

const isRate = ({ kind }) => kind !== "parallel";

// A line per rate, in parts of the limit in force at the time.
export class Burn extends Recently {
	constructor() {
		const legend = h("ul", { class: "legend" });
		const table = new Table("Use of each limit, last 10 minutes",
			[["limit", "wide"], ["now", "n"], ["highest", "n"], ["usable", "n"]]);
		super(170, "burn", "Use of the limits, last 10 minutes", legend,
			h("details", {}, h("summary", { text: "As a table" }), table.root));
		[this.legend, this.table] = [legend, table];
		put(this.note, "The pool has no rate limits.");
	}

	update({ pool, at, limits }, history) {
		this.now = Date.parse(at);
		// Lines differ in colour and in dashes; from the seventh on they begin anew.
		this.lines = limits.filter(isRate).map((limit, n) => {
			const points = [...history.of(pool, limit.limit), sample(this.now, limit)];
			const highest = points.reduce((best, point) => (part(point) > part(best) ? point : best));
			return { limit, ink: `line ink${n % 6}`, points, highest, last: points.at(-1) };
		});
		show(this.root, limits.length === 0 || this.lines.length > 0);
		show(this.note, this.lines.length === 0);
		show(this.drawn, this.lines.length > 0);
		this.draw();
		const name = (line) => limitName(line.limit.limit);
		keyed(this.legend, this.lines, name, ({ ink }) => h("li", {},
			s("svg", { class: "key", viewBox: "0 0 24 8" }, s("path", { class: ink, d: "M0 4H24" })),
			h("span"), h("b")), (item, line) => {
			put(item.children[1], name(line));
			put(item.children[2], percentOf(line.last));
		});
		this.table.rows(this.lines, name, null, ({ limit, highest, last }) => {
			const of = (point) => `${amount(limit.unit, point[1])} (${percentOf(point)})`;
			return [limitName(limit.limit), of(last), of(highest), amount(limit.unit, limit.effective)];
		});
		attr(this.svg, "aria-label", `Use of each limit over the last 10 minutes. ${
			this.lines.map((line) => `${name(line)}: now ${percentOf(line.last)}, highest ${
				percentOf(line.highest)}`).join(". ")}.`);
	}

	shapes() {
		const most = Math.max(...this.lines.map(({ highest }) => part(highest)));
		const top = Math.max(1.15, most * 1.05);
		const step = top < 2.5 ? 0.5 : Math.ceil(top / 5);
		const drawn = [];
		for (let of = 0; of <= top; of += step) drawn.push(...this.level(of / top, `${of * 100} %`));
		drawn.push(...this.level(1 / top, "", "bound"), s("text",
			{ x: LEFT + 4, y: this.y(1 / top) - 4, class: "start", text: "usable" }), ...this.times());
		for (const { points, ink } of this.lines) {
			drawn.push(this.line(points, (point) => part(point) / top, ink));
		}
		return drawn;
	}
}

// The slots in use, and how many there were at the time.
export class Slots extends Recently {
	constructor() {
		super(96, "inflight", "Slots in use (parallel), last 10 minutes");
	}

	update({ pool, at, limits }, history) {
		const limit = limits.find((of) => !isRate(of));
		show(this.root, limit !== undefined);
		show(this.drawn, limit !== undefined);
		show(this.note, false);
		if (!limit) return;
		this.now = Date.parse(at);
		this.points = [...history.of(pool, limit.limit), sample(this.now, limit)];
		this.draw();
		const [, now, usable] = this.points.at(-1);
		attr(this.svg, "aria-label", `Slots in use over the last 10 minutes: now ${count(now)} of ${
			count(usable)}, at most ${count(Math.max(...this.points.map(([, used]) => used)))}.`);
	}

	shapes() {
		const top = 1.15 * Math.max(1, ...this.points.map(([, used, usable]) => Math.max(used, usable)));
		const [, , usable] = this.points.at(-1);
		return [...this.level(0, "0"), ...this.level(usable / top, count(usable)), ...this.times(),
			this.line(this.points, ([, , most]) => most / top, "bound"),
			this.line(this.points, ([, used]) => used / top, "line")];
	}
}
