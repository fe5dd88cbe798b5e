// What the tables of a pool have in common: a heading, a sentence for when they are empty or cut, and
// the cell of an agent.

import { Table, attr, h, put, show } from "./dom.js";
import { cost, count, joined } from "./words.js";

const phone = matchMedia("(max-width: 44rem)");
// So many rows are shown until the reader asks for all.
const FEW = 8;
const FEW_ON_A_PHONE = 3;

// A table with its heading; hidden while it has no rows, unless it has a sentence for that.
export class Listing {
	isAll = false;

	constructor(kind, title, caption, none, heads) {
		this.table = new Table(caption, heads);
		this.title = title;
		this.heading = h("h3", { text: title, tabindex: -1 });
		this.count = h("span", { class: "count" });
		this.none = h("p", { class: "none", text: none });
		this.more = h("p", { class: "more" });
		this.note = h("p", { class: "sum", hidden: "" });
		this.all = h("button", { onclick: () => {
			this.isAll = !this.isAll;
			this.draw();
		} });
		this.head = h("header", {}, this.heading, this.count);
		this.root = h("section", { class: `listing ${kind}` }, this.head, this.none, this.note,
			this.table.root, this.all, this.more);
	}

	rows(items, total, keyOf, fit, texts) {
		this.draw = () => {
			const few = phone.matches ? FEW_ON_A_PHONE : FEW;
			// One row more takes no more room than the button.
			const isCut = items.length > few + 1;
			const seen = isCut && !this.isAll ? items.slice(0, few) : items;
			this.table.rows(seen, keyOf, fit, texts, this.heading);
			show(this.all, isCut);
			put(this.all, this.isAll ? "Show fewer" : `Show all ${count(items.length)}`);
			put(this.more, total > items.length && (this.isAll || !isCut)
				? `and ${count(total - items.length)} more` : "");
			show(this.more, this.more.textContent !== "");
		};
		this.draw();
		show(this.table.root, items.length > 0);
		show(this.none, items.length === 0 && this.none.textContent !== "");
		show(this.root, items.length > 0 || this.none.textContent !== "");
		this.root.classList.toggle("empty", items.length === 0);
		put(this.count, total > 0 ? count(total) : "");
	}

	// Whose figures these are, if not those of all agents now.
	mark(whose) {
		put(this.heading, this.title + (whose && ` (${whose})`));
		this.root.classList.toggle("known", whose === LAST_KNOWN);
	}
}

// The figures are from before the store went away.
export const LAST_KNOWN = "last known";

// The agent of a row, as a link that highlights it everywhere, and what else is known of it. The
// process of a call through the daemon is the daemon's, and names no agent.
export function who(cell, { agent, priority, part_of: named, pid, daemon, stopped, model, task }, pool) {
	if (!cell.firstChild) cell.append(h("a", { class: "name" }), h("small"));
	const [name, meta] = cell.children;
	put(name, agent);
	if (pool) linkAgent(name, pool, agent);
	put(meta, joined(" · ", priority, named && `for ${named}`, pid && !daemon && `pid ${pid}`,
		stopped && "process is stopped", model, task));
}

// The agent that the address names.
export const chosenAgent = () => new URLSearchParams(location.hash.slice(1)).get("agent");

function linkAgent(name, pool, agent) {
	const isChosen = chosenAgent() === agent;
	const of = `#pool=${encodeURIComponent(pool)}`;
	attr(name, "href", isChosen ? of : `${of}&agent=${encodeURIComponent(agent)}`);
	attr(name, "aria-current", isChosen ? "true" : null);
	attr(name, "title", isChosen ? "Show all agents alike" : `Highlight ${agent}`);
	name.closest("tr").classList.toggle("mine", isChosen);
}

// What a call takes; on a pool with slots alone that is a slot.
export const takes = (units, { limits }) => (limits.length > 0
	&& limits.every(({ kind }) => kind === "parallel") ? "1 slot" : cost(units));
