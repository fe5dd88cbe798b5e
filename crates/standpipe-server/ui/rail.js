// The list of pools. Its rows have one height, and its order is kept while the reader is in it. On a
// small screen it opens from the head of the page.

import { nextAndLast } from "./diagnosis.js";
import { attr, h, keyed, put, show } from "./dom.js";
import { Order, needsAttention, stateOf } from "./state.js";
import { fullest, isSlots, share, shortName, toneOf } from "./use.js";
import { ago, count, instantOf, isOld, joined, plural, time, whole } from "./words.js";

// With more pools than these a field filters them.
const MANY_POOLS = 8;

// Which agents of a pool have the text in their name; null if neither they nor the pool have it.
function found({ pool, agents }, text) {
	if (text === "" || pool.toLowerCase().includes(text)) return [];
	const names = agents.map(({ name }) => name).filter((name) => name.toLowerCase().includes(text));
	return names.length > 0 ? names : null;
}

// When the pool was last used, as far as its agents show it.
function lastCall({ agents }) {
	const since = Math.min(...agents.filter((of) => !of.never_called).map((of) => of.active_ms));
	return Number.isFinite(since) ? `last call ${ago(since)}` : "no call yet";
}

// The use of a pool in a few words, and until when it is held.
function detail(pool, word, most) {
	const { pause, terminal, waiting, tickets } = pool;
	const waits = waiting > 0 && `${count(waiting)} waiting`;
	if (word === "paused") return joined(" · ", isOld() ? `until ${time(pause.until)}`
		: `${whole(pause.for_ms)} left`, waits);
	if (word === "stopped") return joined(" · ", terminal.until ? `until ${time(terminal.until)}`
		: "until it is resumed", waits);
	const others = most?.others > 0 && `${share(most.others, most.base)} outside`;
	const used = most && (isSlots(most.limit) ? `${count(most.taken)} of ${count(most.base)} slots`
		: `${share(most.taken, most.base)} ${shortName(most.limit).replace("requests", "req")}`);
	// Until when comes first: the line may be cut at its end.
	if (word.endsWith("waiting") && tickets.length > 0) {
		return joined(" · ", nextShort(nextAndLast(tickets)[0]), others || used);
	}
	if (word === "idle" && !(most?.taken > 0)) return lastCall(pool);
	return joined(" · ", pool.in_flight > 0 && !(most && isSlots(most.limit))
		&& `${count(pool.in_flight)} in flight`, used, others);
}

// `next 42 s`, `next ≥ 53 min`; nothing if it is not known.
function nextShort(ticket) {
	const { ms, isBound } = instantOf(ticket);
	return ticket.reason && ms && !isOld() && `next ${isBound ? "≥ " : ""}${
		whole(ms).replace(/( min| h) \d+ (s|min)$/, "$1")}`;
}

const HELD = ["paused", "stopped", "store unavailable"];

export class Rail {
	#order = new Order();

	constructor(ui) {
		this.ui = ui;
		ui.filter.addEventListener("input", () => this.#filter());
		ui.filter.addEventListener("keydown", (event) => this.#press(event, 0));
		ui.rail.addEventListener("keydown", (event) => this.#press(event,
			this.#links().indexOf(document.activeElement)));
		ui.switch.addEventListener("click", () => this.open(!this.isOpen));
		document.addEventListener("keydown", ({ key }) => {
			if (key !== "Escape" || !this.isOpen) return;
			this.open(false);
			ui.switch.focus();
		});
		ui.rail.addEventListener("click", () => this.open(false));
	}

	get isOpen() {
		return document.body.classList.contains("choosing");
	}

	open(isOpen) {
		document.body.classList.toggle("choosing", isOpen);
		attr(this.ui.switch, "aria-expanded", isOpen);
		if (isOpen) this.#reveal();
	}

	#links = () => [...this.ui.rail.querySelectorAll("a")];

	// The arrow keys go from the field to the list and along it; Enter opens the first that is found.
	#press(event, at) {
		const links = this.#links();
		const isField = event.target === this.ui.filter;
		if (isField && event.key === "Enter") links[0]?.click();
		const to = { ArrowDown: isField ? 0 : at + 1, ArrowUp: at - 1 }[event.key];
		if (to === undefined || (isField && event.key === "ArrowUp")) return;
		event.preventDefault();
		(to < 0 ? this.ui.filter : links[Math.min(to, links.length - 1)])?.focus();
	}

	// The pools in the order of the list.
	sort(pools, isStoreDown) {
		const isHeld = this.ui.rail.matches(":hover, :focus-within");
		return this.#order.sort(pools, isStoreDown, isHeld);
	}

	update(pools, chosen, isStoreDown) {
		Object.assign(this, { pools, chosen, isStoreDown });
		this.#filter();
		const bad = pools.filter((of) => of !== chosen && needsAttention(of, isStoreDown)).length;
		const { ui } = this;
		const [level, word] = chosen ? stateOf(chosen, isStoreDown) : ["idle", "no such pool"];
		const [name, state, more] = ui.switch.children;
		const title = chosen?.pool ?? "Pools";
		if (name.title !== title) name.replaceChildren(...middle(title));
		name.title = title;
		attr(state, "class", `word sign ${level}`);
		put(state, word);
		put(more, bad > 0 ? `+${count(bad)} ${bad === 1 ? "needs" : "need"} attention` : "");
		// In an outage the banner names them.
		show(more, bad > 0 && !isStoreDown);
		if (this.seen !== chosen?.pool) {
			this.seen = chosen?.pool;
			this.#reveal();
		}
	}

	// Scrolls the list, and not the page, to the chosen pool.
	#reveal() {
		const item = this.ui.rail.querySelector("[aria-current]");
		const list = this.ui.pools;
		if (!item) return;
		const [row, room] = [item, list].map((one) => one.getBoundingClientRect());
		if (row.top < room.top) list.scrollTop += row.top - room.top - row.height;
		// The list may reach below the window while the head of the page is in sight.
		const end = Math.min(room.bottom, innerHeight);
		if (row.bottom > end) list.scrollTop += row.bottom - end + row.height;
	}

	#filter() {
		const { ui, pools, chosen, isStoreDown } = this;
		if (!pools) return;
		show(ui.filter, pools.length > MANY_POOLS);
		const text = ui.filter.hidden ? "" : ui.filter.value.trim().toLowerCase();
		const hits = pools.map((pool) => [pool, found(pool, text)]).filter(([, names]) => names);
		show(ui.nothing, hits.length === 0 && pools.length > 0);
		const sum = (of) => count(pools.reduce((all, pool) => all + pool[of], 0));
		put(ui.sum, text ? `${count(hits.length)} of ${plural(pools.length, "pool")}`
			: `${plural(pools.length, "pool")}, ${sum("in_flight")} in flight, ${sum("waiting")} waiting`);
		keyed(ui.rail, hits, ([{ pool }]) => pool, ([{ pool }]) => h("li", {},
			h("a", { href: `#pool=${encodeURIComponent(pool)}` }, h("span", { class: "name", title: pool },
				...middle(pool)), h("b", { class: "word" }), h("span", { class: "level" }, h("i")),
			h("small"))), (item, [pool, names]) => this.#row(item.firstChild, pool, names,
			pool === chosen, isStoreDown));
	}

	#row(anchor, pool, names, isChosen, isStoreDown) {
		const [, word, bar, line] = anchor.children;
		const [level, text] = stateOf(pool, isStoreDown);
		attr(anchor, "class", `sign ${level}`);
		attr(anchor, "aria-current", isChosen ? "page" : null);
		const most = fullest(pool);
		const isBare = HELD.includes(text) || !most || (level === "idle" && most.taken === 0);
		attr(bar, "class", joined(" ", "level", isBare && "bare", most && toneOf(pool, most.limit)));
		bar.firstChild.style.width = `${isBare ? 0 : 100 * Math.min(1, most.taken / most.base)}%`;
		put(word, text);
		const agents = names.slice(0, 3).join(", ");
		put(line, agents ? `agent ${agents}` : detail(pool, text, most));
		attr(line, "title", line.textContent);
	}
}

// A long name is cut in the middle: pools of one scope differ at its end.
function middle(name) {
	const end = name.length > 24 ? name.slice(-10) : "";
	return [h("span", { class: "head", text: name.slice(0, name.length - end.length) }),
		...(end ? [h("span", { text: end })] : [])];
}
