// The use of the limits over the last minutes. Rates are drawn in parts of the limit that was in
// force at the time, in the base of all other views; slots are drawn apart, as numbers of calls.

import { Table, attr, h, put, s, show } from "./dom.js";
import { eventText, gravity } from "./events.js";
import { LONGEST, partIn, sampleAt, takenIn } from "./history.js";
import { BOTTOM, Plot, TOP } from "./plot.js";
import { isSlots, share, shortName } from "./use.js";
import { amount, count, joined, limitName, time, whole } from "./words.js";

// A plot is as long as what is known, in these steps with these ticks, so that a new daemon has no
// empty plot.
const SPANS = [[60_000, 15_000], [120_000, 30_000], [300_000, 60_000], [LONGEST, 120_000]];

// Events that explain a bend of a line; so many are marked.
const MARKED = ["throttle", "stop", "pause", "resume", "config"];
const MOST_MARKED = 20;

const percentIn = (point) => share(takenIn(point), point[3]);
const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

// The last minutes of one pool, with the clock below.
class Recently extends Plot {
	events = [];

	// `all` are the samples of every line, the oldest first.
	since(what, { pool, at }, all, events) {
		this.now = Date.parse(at);
		const first = Math.min(this.now, ...all.map(([[then]]) => then));
		[this.span, this.step] = SPANS.find(([span]) => span >= this.now - first) ?? SPANS.at(-1);
		put(this.title, `${what}, last ${whole(this.span)}`);
		this.events = events.filter((event) => MARKED.includes(event.kind)
			&& [pool, "*"].includes(event.pool) && Date.parse(event.at) >= this.now - this.span)
			.slice(-MOST_MARKED);
	}

	xOf = (at) => this.x(1 - (this.now - at) / this.span);

	// What all samples have in common, and the events between them.
	stopsOf(points) {
		const times = [...points.map(([at]) => at), ...this.events.map(({ at }) => Date.parse(at))];
		return [...new Set(times)].filter((at) => at >= this.now - this.span && at <= this.now)
			.sort((a, b) => a - b);
	}

	// The instant, and the events at it.
	head(at) {
		if (at === null) return "no figures yet";
		const before = this.now - at;
		const noted = this.events.filter((event) => Math.abs(Date.parse(event.at) - at) <= 1_000);
		return joined(" · ", `${time(at)} (${before < 1_000 ? "now" : `${whole(before)} ago`})`,
			...new Set(noted.slice(0, 3).map(eventText)));
	}

	// The clock, pauses as spans, refusals as triangles on the axis, and other events as lines.
	times() {
		const floor = this.high - BOTTOM;
		const drawn = [];
		for (const event of this.events) {
			const x = this.xOf(Date.parse(event.at));
			if (event.kind === "pause") {
				const end = Math.min(this.now, Date.parse(event.until ?? event.at), ...this.events
					.filter((of) => of.kind === "resume" && of.at > event.at).map(({ at }) => Date.parse(at)));
				drawn.push(s("rect", { class: "held", x, y: TOP, height: floor - TOP,
					width: Math.max(2, this.xOf(end) - x) }));
			}
			drawn.push(["throttle", "stop"].includes(event.kind)
				? s("path", { class: "refused", d: `M${x} ${floor - 9}l5 9h-10z` })
				: s("path", { class: `note ${gravity(event)}`, d: `M${x.toFixed(1)} ${TOP}V${floor}` }));
		}
		const zone = new Date(this.now).getTimezoneOffset() * 60_000;
		const first = Math.ceil((this.now - this.span - zone) / this.step) * this.step + zone;
		const every = this.step * (this.wide < 420 ? 2 : 1);
		for (let at = first; at <= this.now; at += every) {
			const of = 1 - (this.now - at) / this.span;
			const text = at % 60_000 === 0 ? clock.format(at) : time(at);
			// A label that would be cut is left out.
			if (Math.min(this.x(of), this.wide - this.x(of)) < 4 * text.length) continue;
			drawn.push(...this.tick(of, text));
		}
		return drawn;
	}

	// What the marks mean, as far as there are any.
	legend() {
		const has = (...kinds) => this.events.some(({ kind }) => kinds.includes(kind));
		return joined(" · ", has("throttle", "stop") && "▲ refused by the provider",
			has("pause") && "shaded: paused", has("config", "resume") && "dotted: another event");
	}

	line(points, level, kind) {
		const steps = points.filter(([at]) => at >= this.now - this.span).map((point) =>
			`${this.xOf(point[0]).toFixed(1)} ${this.y(level(point)).toFixed(1)}`);
		return s("path", { class: kind, d: `M${steps.join("L")}` });
	}
}

// A limit at an instant, and who used it.
function figuresOf({ limit, ink, points }, at) {
	const point = sampleAt(points, at);
	const text = `${shortName(limit)} ${percentIn(point)} (${amount(limit.unit, takenIn(point))} of ${
		amount(limit.unit, point[3])})`;
	const unknown = takenIn(point) > 0 && point[4] === undefined && "by whom was not recorded then";
	return [joined(": ", text, point[4] || unknown), ink];
}

// A line per rate, in parts of the limit in force at the time.
export class Burn extends Recently {
	constructor(cursor) {
		const marked = h("p", { class: "marked" });
		const table = new Table("Use of each limit", [["limit", "wide"], ["now", "n"],
			["highest", "n"], ["base", "n"]]);
		super(170, "burn", "Use of the limits", cursor, marked,
			h("details", {}, h("summary", { text: "As a table" }), table.root));
		[this.marked, this.table] = [marked, table];
	}

	update(pool, history, events) {
		const { limits } = pool;
		// Lines differ in colour and in dashes; from the seventh on they begin anew.
		this.lines = limits.filter((limit) => !isSlots(limit)).map((limit, n) => {
			const points = history.upTo(pool, limit);
			const highest = points.reduce((best, point) => (partIn(point) > partIn(best) ? point : best));
			return { limit, ink: `line ink${n % 6}`, points, highest, last: points.at(-1) };
		});
		this.since("Use of the limits", pool, this.lines.map(({ points }) => points), events);
		for (const part of [this.root, this.drawn]) show(part, this.lines.length > 0);
		show(this.note, false);
		if (this.lines.length === 0) return;
		this.top = Math.max(1.1, 1.05 * Math.max(...this.lines.map(({ highest }) => partIn(highest))));
		this.draw();
		put(this.marked, this.legend());
		const name = ({ limit }) => limitName(limit.limit);
		this.table.rows(this.lines, name, null, ({ limit, highest, last }) => {
			const of = (point) => `${amount(limit.unit, takenIn(point))} (${percentIn(point)})`;
			return [name({ limit }), of(last), of(highest), amount(limit.unit, last[3])];
		});
		attr(this.svg, "aria-label", `Use of each limit over the last ${whole(this.span)}. ${
			this.lines.map((line) => `${name(line)}: now ${percentIn(line.last)}, highest ${
				percentIn(line.highest)}`).join(". ")}.`);
	}

	stops() {
		return this.stopsOf(this.lines[0]?.points ?? []);
	}

	reading(at) {
		return [this.head(at), this.lines.map((line) => figuresOf(line, at)),
			this.lines.map(({ points }) => partIn(sampleAt(points, at)) / this.top)];
	}

	shapes() {
		const { top } = this;
		const step = top < 2.5 ? 0.5 : Math.ceil(top / 5);
		const drawn = [];
		for (let of = 0; of <= top; of += step) drawn.push(...this.level(of / top, `${of * 100} %`));
		drawn.push(...this.level(1 / top, "", "bound"), ...this.times());
		for (const { points, ink } of this.lines) {
			drawn.push(this.line(points, (point) => partIn(point) / top, ink));
		}
		return drawn;
	}
}

// With many samples, slots are drawn as a band in spans of so long: a line would be a comb.
const BAND = 10_000;

// The slots in use, and how many there were at the time.
export class Slots extends Recently {
	points = [];

	constructor(cursor) {
		super(84, "inflight", "Slots in use", cursor);
	}

	update(pool, history, events) {
		const limit = pool.limits.find(isSlots);
		for (const part of [this.root, this.drawn]) show(part, limit !== undefined);
		show(this.note, false);
		if (!limit) return;
		this.points = history.upTo(pool, limit);
		this.since("Slots in use", pool, [this.points], events);
		this.top = 1.1 * Math.max(1, ...this.points.map(([, used, , all]) => Math.max(used, all)));
		this.draw();
		const [, now, , all] = this.points.at(-1);
		attr(this.svg, "aria-label", `Slots in use over the last ${whole(this.span)}: now ${
			count(now)} of ${count(all)}, at most ${
			count(Math.max(...this.points.map(([, used]) => used)))}.`);
	}

	stops() {
		return this.stopsOf(this.points);
	}

	reading(at) {
		const [, used, , all, who] = sampleAt(this.points, at);
		return [this.head(at), [[joined(": ", `${count(used)} of ${count(all)} slots in use`, who),
			"line"]], [used / this.top]];
	}

	shapes() {
		const { top, points } = this;
		const all = points.at(-1)[3];
		const drawn = [...this.level(0, "0"), ...this.level(all / top, count(all)), ...this.times(),
			this.line(points, ([, , , most]) => most / top, "bound")];
		if (this.span <= 120_000) return [...drawn, this.line(points, ([, used]) => used / top, "line")];
		const spans = new Map();
		for (const [at, used] of points.filter(([then]) => then >= this.now - this.span)) {
			const key = Math.floor(at / BAND);
			spans.set(key, [...spans.get(key) ?? [], used]);
		}
		const bands = [...spans].map(([key, of]) => [Math.min(this.now, (key + 0.5) * BAND),
			Math.min(...of), Math.max(...of), of.reduce((sum, n) => sum + n) / of.length])
			.filter(([at]) => at >= this.now - this.span);
		const at = (n) => ([then, ...of]) => `${this.xOf(then).toFixed(1)} ${
			this.y(of[n] / top).toFixed(1)}`;
		return [...drawn, s("path", { class: "band",
			d: `M${[...bands.map(at(1)), ...bands.map(at(0)).reverse()].join("L")}Z` }),
		this.line(bands, ([, , , mean]) => mean / top, "line")];
	}
}
