// What has just changed: a note at the edge of the window that does not move the page, and a polite
// message for screen readers, one a minute at most.

import { h, put } from "./dom.js";
import { time, whole } from "./words.js";

const SHOWN = 10_000;
const MINUTE = 60_000;
// A shorter pause is over before anybody could act.
const SHORTEST_PAUSE = 10_000;

export class Toast {
	#pending = [];
	#spoken = -MINUTE;
	#timer = 0;

	constructor(notes, reader) {
		[this.notes, this.reader] = [notes, reader];
	}

	// A change that was not made on this page.
	show(text) {
		const note = h("p", { text: `${time(new Date())} ${text}` });
		this.notes.append(note);
		while (this.notes.children.length > 3) this.notes.firstChild.remove();
		setTimeout(() => note.remove(), SHOWN);
		this.#pending.push(text);
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => this.#speak(),
			Math.max(0, this.#spoken + MINUTE - performance.now()));
	}

	#speak() {
		this.#spoken = performance.now();
		put(this.reader, this.#pending.slice(-3).join(" "));
		this.#pending = [];
	}

	// The result of an action is visible where it was done; readers get a message.
	done(text) {
		put(this.reader, text);
	}
}

// The pauses and stops that began or ended from one snapshot to the next.
export function changes(before, now) {
	const was = new Map(before.map((pool) => [pool.pool, pool]));
	return now.flatMap(({ pool, pause, terminal }) => {
		const old = was.get(pool);
		const isLong = (of) => of && lengthOf(of) >= SHORTEST_PAUSE;
		if (!old) return [];
		if (terminal && !old.terminal) return [[pool, `${pool}: the provider stopped the pool.`]];
		if (isLong(pause) && !old.pause) {
			return [[pool, `${pool} is paused for ${whole(pause.for_ms)}.`]];
		}
		const isOver = !pause && !terminal && (old.terminal || isLong(old.pause));
		return isOver ? [[pool, `${pool} admits calls again.`]] : [];
	});
}

// How long a pause is, or was when it was first seen.
const lengths = new Map();
function lengthOf({ until, for_ms: left }) {
	if (lengths.size > 1_000) lengths.clear();
	if (!lengths.has(until)) lengths.set(until, left);
	return lengths.get(until);
}
