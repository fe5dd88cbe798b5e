// An order that is calm: what is listed changes its place only for what lasts. Pure: no page, no
// network.

// A change counts after so long.
export const SETTLED = 5_000;

// A text that changes at once with its kind, else only if another one has been due for a while.
export class CalmText {
	#text = "";
	#kind = "";
	#due = null;

	of(text, kind, now = Date.now()) {
		this.#due = text === this.#text ? null : this.#due ?? now;
		const isLasting = this.#due !== null && now - this.#due >= SETTLED;
		if (kind !== this.#kind || isLasting) [this.#text, this.#kind, this.#due] = [text, kind, null];
		return this.#text;
	}
}

// Sorts by a figure, the largest first. One that was overtaken keeps its place until the other was
// larger for a while, and all keep theirs while `isHeld`.
export class CalmOrder {
	#names = [];
	#overtaking = new Map(); // pairs of names, and since when the second is the larger one

	sort(items, nameOf, sizeOf, isHeld, now = Date.now()) {
		const byName = new Map(items.map((item) => [nameOf(item), item]));
		const size = (name) => sizeOf(byName.get(name));
		const names = this.#names.filter((name) => byName.has(name));
		for (const name of [...byName.keys()].sort((a, b) => size(b) - size(a) || (a < b ? -1 : 1))) {
			if (names.includes(name)) continue;
			const place = names.findIndex((other) => size(other) < size(name));
			names.splice(isHeld || place < 0 ? names.length : place, 0, name);
		}
		this.#names = isHeld ? names : this.#settled(names, size, now);
		return this.#names.map((name) => byName.get(name));
	}

	#settled(names, size, now) {
		const seen = new Map();
		for (let at = 1; at < names.length; at += 1) {
			// One that passed its neighbour may have passed the next as well.
			for (let to = at; to > 0 && size(names[to]) > size(names[to - 1]); to -= 1) {
				const pair = JSON.stringify([names[to - 1], names[to]]);
				const since = this.#overtaking.get(pair) ?? now;
				seen.set(pair, since);
				if (now - since < SETTLED) break;
				[names[to - 1], names[to]] = [names[to], names[to - 1]];
			}
		}
		this.#overtaking = seen;
		return names;
	}
}
