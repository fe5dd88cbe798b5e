// A plot that a pointer, a finger or the arrow keys read. Its figures stand above it and are there
// before anything is pointed at, so that the page does not move and the curve is never covered.

import { attr, h, keyed, put, s } from "./dom.js";

export const [LEFT, RIGHT, TOP, BOTTOM] = [42, 8, 8, 22];

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
// read, `xOf(time)`, and `reading(time)`: a head, lines of a text and a key, and the heights of dots.
export class Plot {
	svg = s("svg", { role: "img", class: "plot" });
	marks = s("g", { class: "marks" });
	readout = h("div", { class: "readout", "aria-hidden": "true" }, h("p", { class: "at" }), h("ul"));
	hover = null;

	constructor(high, kind, title, cursor, ...below) {
		[this.high, this.cursor] = [high, cursor];
		cursor.plots.push(this);
		this.handle = h("div", { class: "handle", role: "slider", tabindex: 0,
			"aria-label": `${title}: figures at a time`, "aria-valuemin": 0 });
		this.listen();
		this.title = h("h3", { text: title });
		this.note = h("p");
		this.drawn = h("div", {}, this.readout, h("div", { class: "field" }, this.svg, this.handle),
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
		attr(this.handle, "aria-valuetext", [head, ...lines.map(([text]) => text)].join(". "));
		const x = isIn ? this.xOf(at) : 0;
		this.marks.replaceChildren(...(isIn ? [s("path", { class: "hair",
			d: `M${x} ${TOP}V${this.high - BOTTOM}` }), ...dots.map((of) =>
			s("circle", { class: "dot", cx: x, cy: this.y(of), r: 3.5 }))] : []));
		this.readout.classList.toggle("reading", isIn);
		put(this.readout.firstChild, head);
		keyed(this.readout.lastChild, lines, ([, ink]) => ink ?? "", ([, ink]) => h("li", {},
			...(ink ? [keyOf(ink)] : []), h("span")), (item, [text]) => put(item.lastChild, text));
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

// The line that a colour stands for.
export const keyOf = (ink) => s("svg", { class: "key", viewBox: "0 0 24 8" },
	s("path", { class: ink, d: "M0 4H24" }));
