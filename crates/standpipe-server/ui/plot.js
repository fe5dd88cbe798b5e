// The use of the limits over the last minutes. Rates are drawn in parts of the limit that was in
// force at the time; slots are drawn apart, as numbers of calls. A pointer, a finger or the arrow
// keys read the figures of an instant; a table and labels have them too.

import { users } from "./diagnosis.js";
import { Table, attr, h, keyed, put, s, show } from "./dom.js";
import { amount, count, eventText, gravity, joined, lastPeriod, limitName, share, time, whole }
	from "./words.js";

const LONGEST = 600_000;
// A plot is as long as what is known, in these steps, so that a new daemon has no empty plot.
const SPANS = [60_000, 120_000, 300_000, LONGEST];
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
		this.pools = new Map(snapshot.pools.map((pool) => {
			const now = Date.parse(pool.at);
			return [pool.pool, new Map(pool.limits.map((limit) => {
				const samples = this.of(pool.pool, limit.limit).filter(([then]) => then >= now - LONGEST);
				const last = samples.at(-1);
				// A little early is on time: snapshots do not come to the millisecond.
				if (!(last?.[0] > now - this.every + 200)) {
					const who = users(pool, limit.limit, 2);
					// The same text is kept once.
					samples.push([...sample(now, limit), who === last?.[3] ? last[3] : who]);
				}
				return [limit.limit, samples];
			}))];
		}));
	}

	of(pool, limit) {
		return this.pools.get(pool)?.get(limit) ?? [];
	}
}

// When, what was taken of what was usable, and, while a page was open, by whom.
const sample = (at, { used, held, effective }) => [at, used + held, effective];
const part = ([, taken, effective]) => taken / Math.max(1, effective);
const percentOf = ([, taken, effective]) => share(taken, effective);

// The instant at which the plots that share the cursor are read.
export class Cursor {
	time = null;
	plots = [];

	set(time) {
		this.time = time;
		for (const plot of this.plots) plot.mark();
	}
}

// A drawing that is as wide as its place. It has `shapes()`, `stops()`, the instants that can be
// read, `xOf(time)`, and `reading(time)`: a head, lines, and the heights of dots.
export class Plot {
	svg = s("svg", { role: "img", class: "plot" });
	marks = s("g", { class: "marks" });
	readout = h("div", { class: "readout", "aria-hidden": "true", hidden: "" });
	hover = null;

	constructor(high, kind, title, cursor, ...below) {
		[this.high, this.cursor] = [high, cursor];
		cursor.plots.push(this);
		this.handle = h("div", { class: "handle", role: "slider", tabindex: 0,
			"aria-label": `${title}: figures at a time`, "aria-valuemin": 0 });
		this.listen();
		this.title = h("h3", { text: title });
		this.note = h("p");
		this.drawn = h("div", {}, h("div", { class: "field" }, this.svg, this.handle, this.readout),
			...below);
		this.root = h("section", { class: kind }, this.title, this.note, this.drawn);
		new ResizeObserver(([{ contentRect: { width } }]) => {
			this.wide = Math.max(200, Math.round(width));
			this.draw();
		}).observe(this.root);
	}

	listen() {
		const { handle, cursor } = this;
		const point = ({ clientX }) => {
			const { left } = handle.getBoundingClientRect();
			this.hover = clientX - left;
			cursor.set(this.nearest(this.hover));
		};
		const leave = () => {
			this.hover = null;
			cursor.set(null);
		};
		const on = { pointermove: point, click: point, blur: leave,
			// A finger that is lifted leaves the figures there.
			pointerleave: ({ pointerType }) => pointerType === "mouse" && leave(),
			focus: () => cursor.time ?? cursor.set(this.stops().at(-1) ?? null),
			keydown: (event) => this.press(event) };
		for (const [name, act] of Object.entries(on)) handle.addEventListener(name, act);
	}

	press(event) {
		const stops = this.stops();
		const at = stops.indexOf(this.cursor.time);
		const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - 10, PageDown: at + 10,
			Home: 0, End: stops.length - 1 };
		if (event.key === "Escape") this.cursor.set(null);
		else if (!(event.key in steps) || stops.length === 0) return;
		else this.cursor.set(stops[Math.max(0, Math.min(stops.length - 1, steps[event.key]))]);
		this.hover = null;
		event.preventDefault();
	}

	nearest(x) {
		const far = (time) => Math.abs(this.xOf(time) - x);
		return this.stops().reduce((best, time) => (best === null || far(time) < far(best)
			? time : best), null);
	}

	draw() {
		if (!this.wide || this.drawn.hidden) return;
		attr(this.svg, "viewBox", `0 0 ${this.wide} ${this.high}`);
		attr(this.svg, "height", this.high);
		this.svg.replaceChildren(...this.shapes(), this.marks);
		// The plot moves on under a pointer that rests.
		if (this.hover !== null) this.cursor.set(this.nearest(this.hover));
		else this.mark();
	}

	// Draws the line of the cursor and its figures, and states them for the keyboard.
	mark() {
		if (!this.wide || this.drawn.hidden) return;
		const stops = this.stops();
		const { time: at } = this.cursor;
		const isIn = at !== null && stops.length > 0 && at >= stops[0];
		const [head, lines, dots] = this.reading(isIn ? at : stops.at(-1) ?? null);
		attr(this.handle, "aria-valuemax", Math.max(0, stops.length - 1));
		attr(this.handle, "aria-valuenow", Math.max(0, isIn ? stops.indexOf(at) : stops.length - 1));
		attr(this.handle, "aria-valuetext", [head, ...lines].join(". "));
		const x = isIn ? this.xOf(at) : 0;
		this.marks.replaceChildren(...(isIn ? [s("path", { class: "hair",
			d: `M${x} ${TOP}V${this.high - BOTTOM}` }), ...dots.map((of) =>
			s("circle", { class: "dot", cx: x, cy: this.y(of), r: 3.5 }))] : []));
		show(this.readout, isIn);
		if (!isIn) return;
		this.readout.replaceChildren(h("b", { text: head }), ...lines.map((text) => h("p", { text })));
		const isLeft = x > this.wide / 2;
		this.readout.style.left = isLeft ? "" : `${x + 10}px`;
		this.readout.style.right = isLeft ? `${this.wide - x + 10}px` : "";
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

// Events that explain a bend of a line; so many are marked.
const MARKED = ["throttle", "stop", "pause", "resume", "config"];
const MOST_MARKED = 20;

// The last minutes of one pool, with the time below.
class Recently extends Plot {
	events = [];

	// `all` are the samples of every line, the oldest first.
	since(what, { pool, at }, all, events) {
		this.now = Date.parse(at);
		const first = Math.min(this.now, ...all.map(([[then]]) => then));
		this.span = SPANS.find((span) => span >= this.now - first) ?? LONGEST;
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

	head(at) {
		const ago = this.now - at;
		return at === null ? "no figures yet"
			: `${time(at)} (${ago < 1_000 ? "now" : `${whole(ago)} ago`})`;
	}

	// The events at the instant.
	noted = (at) => [...new Set(this.events.filter((event) =>
		Math.abs(Date.parse(event.at) - at) <= 1_000).map(eventText))].slice(0, 3);

	times() {
		const parts = this.wide < 560 ? 2 : 5;
		const drawn = this.events.map((event) => s("path", { class: `note ${gravity(event)}`,
			d: `M${this.xOf(Date.parse(event.at)).toFixed(1)} ${TOP}V${this.high - BOTTOM}` }));
		for (let n = 0; n <= parts; n += 1) {
			const ago = this.span * (1 - n / parts);
			drawn.push(...this.tick(n / parts, n === parts ? "now" : `${whole(ago)} ago`,
				{ 0: "start", [parts]: "end" }[n]));
		}
		return drawn;
	}

	line(points, level, kind) {
		const steps = points.filter(([at]) => at >= this.now - this.span).map((point) =>
			`${this.xOf(point[0]).toFixed(1)} ${this.y(level(point)).toFixed(1)}`);
		return s("path", { class: kind, d: `M${steps.join("L")}` });
	}
}

const isRate = ({ kind }) => kind !== "parallel";

const isBucket = ({ kind }) => kind === "bucket";

// A limit at an instant, and who used it. A bucket is drawn by what it still has to refill, which
// is less than what was used in its period.
function figuresOf([limit, point]) {
	const [, taken, usable, who] = point;
	const text = `${limitName(limit.limit)} ${percentOf(point)} (${amount(limit.unit, taken)} of ${
		amount(limit.unit, usable)}${isBucket(limit) ? " to refill" : ""})`;
	return joined(isBucket(limit) ? `; used in ${lastPeriod(limit.limit)}: ` : ": ", text, who);
}

// The sample that was the last one at an instant.
const sampleAt = (points, at) => points.findLast(([then]) => then <= at) ?? points[0];

// A line per rate, in parts of the limit in force at the time.
export class Burn extends Recently {
	constructor(cursor) {
		const legend = h("ul", { class: "legend" });
		const marked = h("p", { class: "marked" }, s("svg", { class: "key", viewBox: "0 0 24 8" },
			s("path", { class: "note", d: "M12 0V8" })), "dotted: an event");
		const table = new Table("Use of each limit", [["limit", "wide"], ["now", "n"],
			["highest", "n"], ["usable", "n"]]);
		super(170, "burn", "Use of the limits", cursor, legend, marked,
			h("details", {}, h("summary", { text: "As a table" }), table.root));
		[this.legend, this.table] = [legend, table];
		put(this.note, "The pool has no rate limits.");
	}

	update(pool, history, events) {
		const { limits } = pool;
		const now = Date.parse(pool.at);
		// Lines differ in colour and in dashes; from the seventh on they begin anew.
		this.lines = limits.filter(isRate).map((limit, n) => {
			const points = [...history.of(pool.pool, limit.limit),
				[...sample(now, limit), users(pool, limit.limit, 2)]];
			const highest = points.reduce((best, point) => (part(point) > part(best) ? point : best));
			return { limit, ink: `line ink${n % 6}`, points, highest, last: points.at(-1) };
		});
		this.since("Use of the limits", pool, this.lines.map(({ points }) => points), events);
		show(this.root, limits.length === 0 || this.lines.length > 0);
		show(this.note, this.lines.length === 0);
		show(this.drawn, this.lines.length > 0);
		const most = Math.max(...this.lines.map(({ highest }) => part(highest)));
		this.top = Math.max(1.15, most * 1.05);
		this.draw();
		const name = ({ limit }) => limitName(limit.limit) + (isBucket(limit) ? " (to refill)" : "");
		keyed(this.legend, this.lines, name, ({ ink }) => h("li", {},
			s("svg", { class: "key", viewBox: "0 0 24 8" }, s("path", { class: ink, d: "M0 4H24" })),
			h("span"), h("b")), (item, line) => {
			put(item.children[1], name(line));
			put(item.children[2], percentOf(line.last));
		});
		this.table.rows(this.lines, name, null, ({ limit, highest, last }) => {
			const of = (point) => `${amount(limit.unit, point[1])} (${percentOf(point)})`;
			return [name({ limit }), of(last), of(highest), amount(limit.unit, limit.effective)];
		});
		attr(this.svg, "aria-label", `Use of each limit over the last ${whole(this.span)}. ${
			this.lines.map((line) => `${name(line)}: now ${percentOf(line.last)}, highest ${
				percentOf(line.highest)}`).join(". ")}.`);
	}

	stops() {
		return this.stopsOf(this.lines[0]?.points ?? []);
	}

	reading(at) {
		const of = this.lines.map(({ limit, points }) => [limit, sampleAt(points, at)]);
		return [this.head(at), [...of.map(figuresOf), ...this.noted(at)],
			of.map(([, point]) => part(point) / this.top)];
	}

	shapes() {
		const { top } = this;
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
	points = [];

	constructor(cursor) {
		super(96, "inflight", "Slots in use (parallel)", cursor);
	}

	update(pool, history, events) {
		const limit = pool.limits.find((of) => !isRate(of));
		show(this.root, limit !== undefined);
		show(this.drawn, limit !== undefined);
		show(this.note, false);
		if (!limit) return;
		this.points = [...history.of(pool.pool, limit.limit),
			[...sample(Date.parse(pool.at), limit), users(pool, limit.limit, 2)]];
		this.since("Slots in use (parallel)", pool, [this.points], events);
		this.top = 1.15 * Math.max(1, ...this.points.map(([, used, usable]) => Math.max(used, usable)));
		this.draw();
		const [, now, usable] = this.points.at(-1);
		attr(this.svg, "aria-label", `Slots in use over the last ${whole(this.span)}: now ${
			count(now)} of ${count(usable)}, at most ${
			count(Math.max(...this.points.map(([, used]) => used)))}.`);
	}

	stops() {
		return this.stopsOf(this.points);
	}

	reading(at) {
		const point = sampleAt(this.points, at);
		const [, used, usable, who] = point;
		return [this.head(at), [joined(": ", `${count(used)} of ${count(usable)} slots in use`, who),
			...this.noted(at)], [used / this.top]];
	}

	shapes() {
		const { top } = this;
		const [, , usable] = this.points.at(-1);
		return [...this.level(0, "0"), ...this.level(usable / top, count(usable)), ...this.times(),
			this.line(this.points, ([, , most]) => most / top, "bound"),
			this.line(this.points, ([, used]) => used / top, "line")];
	}
}
