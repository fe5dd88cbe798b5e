// The use of the limits over the last minutes. Rates are drawn in parts of the limit that was in
// force at the time, in the base of all other views; slots are drawn apart, as numbers of calls.

import { Table, attr, h, put, s, show } from "./dom.js";
import { eventText, gravity } from "./events.js";
import { GAP, LONGEST, partIn, runsOf, sampleAt, takenIn } from "./history.js";
import { BOTTOM, LEFT, Plot, TOP } from "./plot.js";
import { isSlots, share, shortName, usersThen } from "./use.js";
import { amount, count, joined, limitName, listed, time, whole } from "./words.js";

// A plot is as long as what is known, in these steps with these ticks, so that a new daemon has no
// empty plot.
const SPANS = [[60_000, 15_000], [120_000, 30_000], [300_000, 60_000], [LONGEST, 120_000]];

// Events that explain a bend of a line; so many are marked.
const MARKED = ["throttle", "stop", "pause", "resume", "config"];
const MOST_MARKED = 20;
// What the dotted lines mean.
const DOTTED = { config: "configuration applied", resume: "resumed" };

const percentIn = (point) => share(takenIn(point), point.base);
const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

// The last minutes of one pool, with the clock below.
class Recently extends Plot {
	events = [];
	gaps = [];

	// `all` are the samples of every line, the oldest first; `now` is later than the last of them if
	// the figures are old.
	since(what, { pool, terminal }, all, events, { now, isOld }) {
		Object.assign(this, { now, isOld, isStopped: terminal !== null });
		this.last = Math.max(...all.map((points) => points.at(-1)?.at ?? 0));
		const first = Math.min(now, ...all.map((points) => points[0]?.at ?? now));
		[this.span, this.step] = SPANS.find(([span]) => span >= now - first) ?? SPANS.at(-1);
		const runs = runsOf(all[0] ?? []);
		// Old figures have no data from their reading on.
		this.gaps = runs.map((run, at) => [run.at(-1).at, runs[at + 1]?.[0].at ?? now])
			.filter(([from, to]) => to - from > (isOld && to === now ? 0 : GAP) && to > now - this.span);
		put(this.title, `${what}, last ${whole(this.span)}`);
		this.events = events.filter((event) => MARKED.includes(event.kind)
			&& [pool, "*"].includes(event.pool) && Date.parse(event.at) >= now - this.span)
			.slice(-MOST_MARKED);
	}

	xOf = (at) => this.x(1 - (this.now - at) / this.span);

	// What all samples have in common, and the events between them.
	stopsOf(points) {
		const times = [...points.map(({ at }) => at), ...this.events.map(({ at }) => Date.parse(at))];
		return [...new Set(times)].filter((at) => at >= this.now - this.span
			&& at <= Math.max(this.last, this.isOld ? 0 : this.now)).sort((a, b) => a - b);
	}

	// The instant, and the events at it.
	head(at) {
		if (at === null) return this.last > 0 ? `no data since ${time(this.last)}` : "no figures yet";
		const before = this.now - at;
		const noted = this.events.filter((event) => Math.abs(Date.parse(event.at) - at) <= 1_000);
		const when = this.isOld ? at === this.last && " (last reading)"
			: ` (${before < 1_000 ? "now" : `${whole(before)} ago`})`;
		return joined(" · ", joined("", time(at), when), ...new Set(noted.slice(0, 3).map(eventText)));
	}

	// Until when a pause or a stop lasted; none for a stop whose end was not noted.
	endOf(event) {
		const ends = [event.until, ...this.events.filter((of) => of.kind === "resume"
			&& of.at > event.at).map(({ at }) => at)].filter((at) => at).map((at) => Date.parse(at));
		return ends.length > 0 || event.kind === "pause" || this.isStopped
			? Math.min(this.isOld ? this.last : this.now, ...ends) : null;
	}

	// The clock, gaps, pauses and stops as spans, refusals as triangles on the axis, other events as
	// lines.
	times() {
		const floor = this.high - BOTTOM;
		const start = this.now - this.span;
		const area = (kind, from, to) => {
			const x = this.xOf(Math.max(start, from));
			return s("rect", { class: kind, x, y: TOP, height: floor - TOP,
				width: Math.max(2, this.xOf(to) - x) });
		};
		const drawn = this.gaps.flatMap(([from, to]) => {
			const [left, right] = [Math.max(LEFT, this.xOf(from)), this.xOf(to)];
			return [area("unknown", from, to), ...(right - left < 60 ? []
				: [s("text", { x: (left + right) / 2, y: (TOP + floor) / 2, text: "no data" })])];
		});
		for (const event of this.events) {
			const at = Date.parse(event.at);
			const end = ["pause", "stop"].includes(event.kind) ? this.endOf(event) : null;
			if (end !== null) drawn.push(area("held", at, end));
			const x = this.xOf(at);
			drawn.push(["throttle", "stop"].includes(event.kind)
				? s("path", { class: "refused", d: `M${x} ${floor - 9}l5 9h-10z` })
				: s("path", { class: `note ${gravity(event)}`, d: `M${x.toFixed(1)} ${TOP}V${floor}` }));
		}
		const zone = new Date(this.now).getTimezoneOffset() * 60_000;
		const first = Math.ceil((start - zone) / this.step) * this.step + zone;
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
		const dotted = Object.keys(DOTTED).filter((kind) => has(kind)).map((kind) => DOTTED[kind]);
		return joined(" · ", has("throttle", "stop") && "▲ refused by the provider",
			has("pause", "stop") && `shaded: ${listed([["pause", "paused"], ["stop", "stopped"]]
				.filter(([kind]) => has(kind)).map(([, word]) => word))}`,
			dotted.length > 0 && `dotted: ${dotted.join(", ")}`);
	}

	line(points, level, kind) {
		const runs = runsOf(points.filter(({ at }) => at >= this.now - this.span));
		const steps = runs.map((run) => `M${run.map((point) =>
			`${this.xOf(point.at).toFixed(1)} ${this.y(level(point)).toFixed(1)}`).join("L")}`);
		return s("path", { class: kind, d: steps.join("") });
	}
}

// A limit at an instant, and who used it.
function figuresOf({ limit, ink, points }, at) {
	const point = at === null ? null : sampleAt(points, at);
	if (!point) return [`${shortName(limit)}: no data`, ink];
	const text = `${shortName(limit)} ${percentIn(point)} (${amount(limit.unit, takenIn(point))} of ${
		amount(limit.unit, point.base)})`;
	return [joined(": ", text, usersThen(limit, point)), ink];
}

// A line per rate, in parts of the limit in force at the time.
export class Burn extends Recently {
	constructor(cursor) {
		const marked = h("p", { class: "marked" });
		const table = new Table("Use of each limit", [["limit", "wide"], ["latest", "n"],
			["highest", "n"], ["base", "n"]]);
		super(170, "burn", "Use of the limits", cursor, marked,
			h("details", {}, h("summary", { text: "As a table" }), table.root));
		[this.marked, this.table] = [marked, table];
	}

	update(pool, history, events, read) {
		const { limits } = pool;
		// Lines differ in colour and in dashes; from the seventh on they begin anew.
		this.lines = limits.filter((limit) => !isSlots(limit)).map((limit, n) => {
			const points = history.upTo(pool, limit);
			const highest = points.reduce((best, point) => (best && partIn(best) >= partIn(point) ? best
				: point), null);
			return { limit, ink: `line ink${n % 6}`, points, highest, last: points.at(-1) };
		}).filter(({ last }) => last);
		for (const part of [this.root, this.drawn]) show(part, this.lines.length > 0);
		show(this.note, false);
		if (this.lines.length === 0) return;
		this.since("Use of the limits", pool, this.lines.map(({ points }) => points), events, read);
		this.top = Math.max(1.1, 1.05 * Math.max(...this.lines.map(({ highest }) => partIn(highest))));
		this.draw();
		put(this.marked, this.legend());
		const name = ({ limit }) => limitName(limit.limit);
		this.table.rows(this.lines, name, null, ({ limit, highest, last }) => {
			const of = (point) => `${amount(limit.unit, takenIn(point))} (${percentIn(point)})`;
			return [name({ limit }), of(last), of(highest), amount(limit.unit, last.base)];
		});
		const latest = read.isOld ? `at ${time(this.last)}` : "now";
		attr(this.svg, "aria-label", `Use of each limit over the last ${whole(this.span)}. ${
			this.lines.map((line) => `${name(line)}: ${latest} ${percentIn(line.last)}, highest ${
				percentIn(line.highest)}`).join(". ")}.`);
	}

	stops() {
		return this.stopsOf(this.lines[0]?.points ?? []);
	}

	reading(at) {
		const level = ({ points }) => (at === null ? null : sampleAt(points, at));
		return [this.head(at), this.lines.map((line) => figuresOf(line, at)), this.lines.map(level)
			.filter((point) => point).map((point) => partIn(point) / this.top)];
	}

	shapes() {
		const { top } = this;
		const step = top < 2.5 ? 0.5 : Math.ceil(top / 5);
		const drawn = [];
		for (let of = 0; of <= top; of += step) drawn.push(...this.level(of / top,
			of < 10 ? `${of * 100} %` : `${of} ×`));
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

	update(pool, history, events, read) {
		this.limit = pool.limits.find(isSlots);
		this.points = this.limit ? history.upTo(pool, this.limit) : [];
		for (const part of [this.root, this.drawn]) show(part, this.points.length > 0);
		show(this.note, false);
		if (this.points.length === 0) return;
		this.since("Slots in use", pool, [this.points], events, read);
		this.top = 1.1 * Math.max(1, ...this.points.map(({ own, base }) => Math.max(own, base)));
		this.draw();
		const { own: now, base: all } = this.points.at(-1);
		attr(this.svg, "aria-label", `Slots in use over the last ${whole(this.span)}: ${
			read.isOld ? `at ${time(this.last)}` : "now"} ${count(now)} of ${count(all)}, at most ${
			count(Math.max(...this.points.map(({ own }) => own)))}.`);
	}

	stops() {
		return this.stopsOf(this.points);
	}

	reading(at) {
		const point = at === null ? null : sampleAt(this.points, at);
		if (!point) return [this.head(at), [["no data", "line"]], []];
		const { own, base } = point;
		return [this.head(at), [[joined(": ", `${count(own)} of ${count(base)} slots in use`,
			usersThen(this.limit, point)), "line"]], [own / this.top]];
	}

	shapes() {
		const { top, points } = this;
		const all = points.at(-1).base;
		const drawn = [...this.level(0, "0"), ...this.level(all / top, count(all)), ...this.times(),
			this.line(points, ({ base }) => base / top, "bound")];
		if (this.span <= 120_000) return [...drawn, this.line(points, ({ own }) => own / top, "line")];
		const spans = new Map();
		for (const { at, own } of points.filter((of) => of.at >= this.now - this.span)) {
			const key = Math.floor(at / BAND);
			spans.set(key, [...spans.get(key) ?? [], own]);
		}
		const bands = [...spans].map(([key, of]) => ({ at: Math.min(this.last, (key + 0.5) * BAND),
			least: Math.min(...of), most: Math.max(...of),
			mean: of.reduce((sum, n) => sum + n) / of.length }))
			.filter(({ at }) => at >= this.now - this.span);
		const at = (level) => (of) => `${this.xOf(of.at).toFixed(1)} ${
			this.y(of[level] / top).toFixed(1)}`;
		return [...drawn, ...runsOf(bands).map((run) => s("path", { class: "band",
			d: `M${[...run.map(at("least")), ...run.map(at("most")).reverse()].join("L")}Z` })),
		this.line(bands, ({ mean }) => mean / top, "line")];
	}
}
