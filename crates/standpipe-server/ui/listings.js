// The tables of a pool: who waits, who uses the quota, what is in flight, what the proxy forwarded.

import { Table, attr, h, keyed, put, setTime, show } from "./dom.js";
import { usableOf, whyWaiting } from "./diagnosis.js";
import { amount, cost, count, dollars, expected, joined, length, limitName, plural, share, time,
	whole } from "./words.js";

const phone = matchMedia("(max-width: 44rem)");
// So many rows are shown until the reader asks for all.
const FEW = 8;
const FEW_ON_A_PHONE = 2;

// A table with its heading, and a sentence for when it is empty or cut.
class Listing {
	isAll = false;

	constructor(kind, title, caption, none, heads) {
		this.table = new Table(caption, heads);
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
		};
		this.draw();
		show(this.table.root, items.length > 0);
		show(this.none, items.length === 0);
		this.root.classList.toggle("empty", items.length === 0);
		put(this.count, total > 0 ? count(total) : "");
	}
}

function who(cell, { agent, priority, part_of: named, pid, stopped, model, task }) {
	if (!cell.firstChild) cell.append(h("span", { class: "name" }), h("small"));
	put(cell.firstChild, agent);
	put(cell.lastChild, joined(" · ", priority, named && `for ${named}`, pid && `pid ${pid}`,
		stopped && "process is stopped", model, task));
}

// What a call takes; on a pool with slots alone that is a slot.
const takes = (units, { limits }) => (limits.length > 0
	&& limits.every(({ kind }) => kind === "parallel") ? "1 slot" : cost(units));

export class Queue extends Listing {
	constructor() {
		super("waiting", "Waiting", "Calls that wait, in order", "No call waits.", [["place", "n place"],
			["agent", "wide"], ["why it waits", "wide"], ["admitted", "wide"], ["wants", "wide"],
			["waited", "n"], ["gives up in", "n"]]);
	}

	update(pool, paused, isStoreDown) {
		const { tickets, waiting } = pool;
		const isHeld = isStoreDown && !pool.cut_off;
		this.rows(tickets, waiting, (of) => `${of.agent} ${of.since} ${of.pid}`, ({ cells }) => {
			for (const at of [3, 5]) cells[at].append(h("time"));
		}, (of, { cells }) => {
			who(cells[1], of);
			setTime(cells[3].firstChild, isHeld ? null : of.until ?? of.expected ?? of.not_before,
				isHeld ? "when the store answers" : expected(of));
			setTime(cells[5].firstChild, of.since, whole(of.waits_ms));
			// It gives up before the instant beside it. `times_out` is not used: it is also set for
			// calls that a pause of some minutes holds and whose timeout is much later.
			const ms = of.until_ms ?? of.expected_ms ?? of.not_before_ms ?? 0;
			const isLate = !isHeld && ms > of.deadline_ms;
			attr(cells[6], "class", isLate ? "n failed" : "n");
			return [count(of.position), null, isHeld ? "the store is unavailable"
				: whyWaiting(of, pool, paused), null, takes(of.cost, pool), null,
			whole(of.deadline_ms) + (isLate ? ", before its turn" : "")];
		});
	}
}

export class Agents extends Listing {
	constructor() {
		super("agents", "Who uses the quota",
			"Agents of this pool: calls in flight, then the largest use",
			"No agent has used this pool yet.", [["agent", "wide"], ["uses", "wide uses"],
				["in flight", "n"], ["waiting", "n"], ["last active", "n late"],
				["floor, cap, remarks", "wide bare"]]);
		// The heads of the columns within the cell. The percentages of all limits have one base.
		this.table.root.tHead.rows[0].cells[1].replaceChildren(h("span", { class: "useshead" },
			...["limit", "", "used", "of usable"].map((text) => h("span", { text }))));
		attr(this.note, "class", "sum percents");
		put(this.note, "Used in the limit’s period, and in percent of usable");
	}

	update(pool, most) {
		const { agents, limits } = pool;
		const of = new Map(limits.map((limit) => [limit.limit, limit]));
		const part = (use) => (of.has(use.limit)
			? (use.used + use.held) / usableOf(of.get(use.limit)) : 0);
		const largest = ({ usage = [] }) => Math.max(0, ...usage.map(part));
		const outside = limits.filter((limit) => limit.outside > 0).map(({ limit, outside: used }) =>
			({ limit, used, held: 0 }));
		const isBusy = (agent) => agent.in_flight > 0;
		const sorted = [...agents].sort((a, b) => isBusy(b) - isBusy(a) || largest(b) - largest(a)
			|| (a.name < b.name ? -1 : 1));
		if (outside.length > 0) sorted.unshift({ name: "outside Standpipe", usage: outside });
		show(this.note, sorted.some(({ usage }) => usage?.length > 0));
		this.rows(sorted, sorted.length, (agent) => agent.name, ({ cells }) =>
			cells[1].append(h("ul"), h("span", { class: "none" })), (agent, row) => {
			const { cells } = row;
			const isSlotted = agent.usage?.some(({ limit }) => of.get(limit)?.kind === "parallel");
			attr(row, "class", isSlotted ? "slotted" : null);
			who(cells[0], { agent: agent.name, priority: priorityOf(agent, pool) });
			keyed(cells[1].firstChild, agent.usage ?? [], ({ limit }) => limit, bar, (item, use) =>
				fill(item, use, of.get(use.limit), part(use)));
			put(cells[1].lastChild, agent.never_called ? "no call admitted yet" : "nothing");
			show(cells[1].lastChild, !agent.usage?.length);
			attr(cells[4], "data-now", lastActive(agent) === "now" ? "" : null);
			return agent.priority ? [null, null, agent.in_flight ? count(agent.in_flight) : "",
				agent.waiting ? count(agent.waiting) : "", lastActive(agent), remark(agent)]
				: [null, null, "", "", "", "counted by the provider, not by Standpipe"];
		});
		if (agents.length >= most) put(this.more, "These were active last; there may be more.");
	}
}

// The priority of an agent's current calls, else the one that it is configured with.
const priorityOf = ({ name, priority }, { leases, tickets }) =>
	[...leases, ...tickets].find(({ agent }) => agent === name)?.priority ?? priority;

function lastActive({ active_ms: ago, in_flight: flying, waiting, never_called: isNew }) {
	if (isNew) return "";
	if (flying + waiting > 0 || (ago !== null && ago < 1_000)) return "now";
	return ago === null || ago === undefined ? "" : `${whole(ago)} ago`;
}

const remark = ({ floor, cap, promoted, denied_ms: denied, waiting, weight }) => joined("; ",
	...floor.map((of) => `floor ${of}`), ...cap.map((of) => `cap ${of}`), weight && `weight ${weight}`,
	promoted && "promoted: its next call is served as standard",
	waiting > 0 && denied >= 60_000 && `denied for ${whole(denied)}`);

// One limit that an agent uses: its name, a bar, the figure and its share.
const bar = () => h("li", {}, h("span", { class: "of" }), h("span", { class: "share" }, h("i")),
	h("b"), h("span", { class: "part" }));

function fill(item, { limit, used, held }, of, part) {
	const [name, track, figure, percent] = item.children;
	put(name, of?.kind === "parallel" ? "in flight" : limitName(limit));
	track.firstChild.style.width = `${100 * Math.min(1, part)}%`;
	put(figure, amount(of?.unit, used + held));
	put(percent, share(part * 1e6, 1e6));
}

export class Leases extends Listing {
	constructor(settle) {
		super("flying", "In flight", "Calls in flight, oldest first", "No call is in flight.",
			[["agent", "wide"], ["holds", "wide"], ["in flight for", "n"], ["expires", "late wide"],
				["settle", "act"]]);
		this.settle = settle;
	}

	update(pool, blocked) {
		const { leases, in_flight: all } = pool;
		this.rows(leases, all, (of) => of.id, (row) => {
			row.cells[2].append(h("time"));
			const onclick = () => this.settle(row.lease);
			row.cells[4].append(h("button", { text: "Settle…", onclick }));
		}, (of, row) => {
			row.lease = of;
			who(row.cells[0], of);
			setTime(row.cells[2].firstChild, of.since, whole(of.age_ms));
			attr(row.cells[4].firstChild, "aria-label",
				`Settle… the lease of ${of.agent}${of.pid ? `, pid ${of.pid}` : ""}`);
			const within = of.expires_ms === null ? "" : `in ${whole(of.expires_ms)}`;
			const ends = of.holder === "ttl" ? within : `with its process${within && `, or ${within}`}`;
			return [null, takes(of.cost, pool), null, ends, null];
		});
		this.block(blocked);
	}

	// Why no lease can be settled; empty if they can.
	block(reason) {
		for (const button of this.table.body.querySelectorAll("button")) disable(button, reason);
		put(this.note, reason && `Settling is not possible: ${reason}.`);
		show(this.note, reason !== "" && this.table.body.rows.length > 0);
	}
}

// A button that would do nothing is disabled and has the reason.
export function disable(button, reason) {
	if (button.disabled !== (reason !== "")) button.disabled = reason !== "";
	attr(button, "title", reason ? `Not possible: ${reason}` : null);
}

// The last calls that came through the proxy, together by agent, model and answer, or each; hidden
// where none did.
export class Proxied extends Listing {
	isEach = false;

	constructor() {
		super("proxied", "Proxied calls", "The last calls through the proxy, latest first", "",
			[["agent", "name wide"], ["model", "wide"], ["status", "n"], ["calls", "n"], ["input", "n"],
				["output", "n"], ["cost", "n"], ["longest wait", "n"], ["ended", "n"]]);
		this.toggle = h("button", { class: "small", "aria-pressed": "false", text: "Each call",
			onclick: () => {
				this.isEach = !this.isEach;
				attr(this.toggle, "aria-pressed", this.isEach);
				this.update(...this.last);
			} });
		this.head.append(this.toggle);
		show(this.note, true);
	}

	update(pool, proxied) {
		this.last = [pool, proxied];
		const mine = proxied.filter((of) => of.pool === pool.pool);
		const lines = this.isEach ? mine.map((of) => ({ ...of, calls: 1 })) : together(mine);
		show(this.root, mine.length > 0);
		const sum = (field) => mine.reduce((all, of) => all + of[field], 0);
		const [input, output, money] = ["input_tokens", "output_tokens", "micro_usd"].map(sum);
		put(this.note, joined(", ", `The last ${plural(mine.length, "call")}: ${count(input)} input`,
			`${count(output)} output tokens`, money > 0 && dollars(money)));
		this.rows(lines, lines.length, (of) => (this.isEach ? `${of.at} ${of.output_tokens} ` : "")
			+ nameOfGroup(of), (row) => row.cells[8].append(h("time")), (of, { cells }) => {
			setTime(cells[8].firstChild, of.at, time(of.at));
			attr(cells[2], "class", of.status >= 400 ? "n failed" : "n");
			return [of.session ?? of.agent, of.model ?? "", String(of.status), count(of.calls),
				count(of.input_tokens), count(of.output_tokens),
				of.micro_usd > 0 ? dollars(of.micro_usd) : "",
				of.waited_ms > 0 ? length(of.waited_ms) : "", null];
		});
		put(this.count, count(mine.length));
	}
}

const nameOfGroup = (of) => `${of.session ?? of.agent} ${of.model} ${of.status}`;

// Calls of one agent to one model with the same answer are one row, with the time of the last.
function together(calls) {
	const groups = new Map();
	for (const call of calls) {
		const of = groups.get(nameOfGroup(call));
		if (!of) groups.set(nameOfGroup(call), { ...call, calls: 1 });
		else {
			of.calls += 1;
			for (const field of ["input_tokens", "output_tokens", "micro_usd"]) of[field] += call[field];
			of.waited_ms = Math.max(of.waited_ms, call.waited_ms);
		}
	}
	return [...groups.values()];
}
