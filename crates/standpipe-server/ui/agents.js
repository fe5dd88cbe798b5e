// Who uses the quota: every agent with its use of each limit, and what others used of it.

import { whyWaiting } from "./diagnosis.js";
import { attr, h, keyed, put, show } from "./dom.js";
import { Listing, who } from "./listing.js";
import { CalmOrder } from "./order.js";
import { isSlots, shortName, toneOf, useOf, usersOf } from "./use.js";
import { ago, amount, count, expected, isOld, joined, plural, whole } from "./words.js";

export class Agents extends Listing {
	#order = new CalmOrder();

	constructor() {
		super("agents", "Who uses the quota", "Agents of this pool: the largest use first",
			"No agent has used this pool yet.", [["agent", "wide"], ["uses", "wide uses"],
				["in flight", "n"], ["waiting", "n"], ["last active", "n late"],
				["floor, cap, remarks", "wide bare"]]);
		// The heads of the columns within the cell. Most limits have one base of percentages.
		const head = this.table.root.tHead.rows[0].cells[1];
		head.replaceChildren(h("span", { class: "useshead" },
			...["limit", "", "used", ""].map((text) => h("span", { text }))));
		this.base = head.firstChild.lastChild;
		this.percents = h("p", { class: "sum percents" });
		this.note.before(this.percents);
	}

	// `turned` are the calls of the last hour that were not admitted, `priorityOf(name)` is the last
	// priority that is known of an agent.
	update(pool, most, turned, priorityOf) {
		const limits = new Map(pool.limits.map((limit) => [limit.limit,
			{ limit, ...useOf(pool, limit), users: usersOf(pool, limit) }]));
		const bases = [...new Set([...limits.values()].filter(({ limit }) => !isSlots(limit)).map(baseOf))];
		// With two bases each row has its own.
		const base = bases.length > 1 ? "" : bases[0] ?? "of usable";
		this.root.classList.toggle("bases", base === "");
		put(this.base, base || "share");
		put(this.percents, joined(" ", "Used in the limit’s period, and in percent", base));
		const part = (use) => {
			const of = limits.get(use.limit);
			return of ? (use.used + use.held) / of.base : 0;
		};
		const largest = sizeOf(limits, part);
		// An agent that only the configuration names uses nothing.
		const seen = pool.agents.filter((agent) => !agent.never_called);
		const sorted = this.#order.sort(seen, ({ name }) => name, largest,
			this.table.root.matches(":hover, :focus-within"));
		const outside = [...limits.values()].filter(({ others }) => others > 0);
		if (outside.length > 0) {
			sorted.unshift({ name: "outside Standpipe", isOutside: true, usage: outside.map(
				({ limit, others }) => ({ limit: limit.limit, used: others, held: 0 })) });
		}
		show(this.percents, sorted.some(({ usage }) => usage?.length > 0));
		// What no agent has leaves its room to the names.
		this.root.classList.toggle("plain", !sorted.some((agent) => !agent.isOutside
			&& remark(agent, turnedOf(turned, agent))) && outside.length === 0);
		const of = { pool, limits, part, turned, priorityOf, base };
		this.rows(sorted, sorted.length, ({ name }) => name, ({ cells }) =>
			cells[1].append(h("ul"), h("span", { class: "none" })),
		(agent, row) => this.row(agent, row, of));
		const idle = pool.agents.filter((agent) => agent.never_called).map(({ name, floor, cap }) =>
			joined(" ", name, [...floor.map((of) => `floor ${of}`), ...cap.map((of) =>
				`cap ${of}`)].join(", ")));
		put(this.more, joined(" ", idle.length > 0 && `No call yet: ${idle.join("; ")}.`,
			pool.agents.length >= most && "These were active last; there may be more."));
		show(this.more, this.more.textContent !== "");
	}

	row(agent, row, { pool, limits, part, turned, priorityOf, base }) {
		const { cells } = row;
		const isSlotted = agent.usage?.some(({ limit }) => limits.get(limit)?.limit.kind === "parallel");
		attr(row, "class", joined(" ", isSlotted && "slotted", agent.isOutside && "outside") || null);
		const priority = agent.isOutside ? "" : priorityNow(agent, pool, priorityOf);
		who(cells[0], { agent: agent.name, priority }, agent.isOutside ? null : pool.pool);
		keyed(cells[1].firstChild, agent.usage ?? [], ({ limit }) => limit, bar, (item, use) =>
			fill(item, agent.name, use, limits.get(use.limit), part(use), pool, base === ""));
		put(cells[1].lastChild, "nothing");
		show(cells[1].lastChild, !agent.usage?.length);
		const active = lastActive(agent, pool, turnedOf(turned, agent));
		attr(cells[4], "data-now", active === "now" ? "" : null);
		if (agent.isOutside) return [null, null, "", "", "", "counted by the provider"];
		return [null, null, agent.in_flight ? count(agent.in_flight) : "",
			agent.waiting ? count(agent.waiting) : "", active,
			remark(agent, turnedOf(turned, agent))];
	}
}

const baseOf = ({ others }) => (others > 0 ? "of limit" : "of usable");
const turnedOf = (turned, { name }) => turned.filter(({ agent }) => agent === name);

// The largest share of a limit that an agent uses. Slots come and go with each call, so they count
// only if nothing else is limited.
function sizeOf(limits, part) {
	const isRated = [...limits.values()].some(({ limit }) => !isSlots(limit));
	return ({ usage = [] }) => Math.max(0, ...usage.filter(({ limit }) => !isRated
		|| !isSlots(limits.get(limit)?.limit ?? {})).map(part));
}

// The priority of an agent's current calls, else the last one that is known, else the one that it is
// configured with. The snapshot has `standard` for an agent of which nothing is known.
function priorityNow({ name, priority, in_flight: flying, waiting }, { leases, tickets }, priorityOf) {
	const current = [...leases, ...tickets].find(({ agent }) => agent === name)?.priority;
	return current ?? (flying + waiting > 0 ? priority
		: priorityOf(name) ?? (priority === "standard" ? "" : priority));
}

// A call that was not admitted is one too.
function lastActive({ active_ms: admitted, in_flight: flying, waiting, isOutside }, { at }, turned) {
	if (isOutside) return "";
	const since = Math.max(0, Math.min(admitted ?? Infinity, ...turned.map((of) =>
		Date.parse(at) - Date.parse(of.at))));
	if (flying + waiting > 0 || since < 1_000) return isOld() ? ago(0) : "now";
	return since === Infinity ? "" : ago(since);
}

const remark = ({ floor, cap, promoted, denied_ms: denied, waiting, weight }, turned) => joined("; ",
	...floor.map((of) => `floor ${of}`), ...cap.map((of) => `cap ${of}`), weight && `weight ${weight}`,
	promoted && "promoted: its next call is served as standard",
	waiting > 0 && denied >= 60_000 && `denied for ${whole(denied)}`,
	turned.length > 0 && `${count(turned.reduce((sum, of) => sum + of.calls, 0))} not admitted`);

// One limit that an agent uses: its name, a bar, the figure and its share.
const bar = () => h("li", {}, h("span", { class: "of" }), h("span", { class: "share" }, h("i")),
	h("b"), h("span", { class: "part" }));

function fill(item, agent, { limit, used, held }, of, part, pool, isMixed) {
	const [name, track, figure, percent] = item.children;
	put(name, of && isSlots(of.limit) ? "in flight" : shortName({ limit }));
	attr(track, "class", joined(" ", "share", of && toneOf(pool, of.limit)));
	track.firstChild.style.width = `${100 * Math.min(1, part)}%`;
	put(figure, amount(of?.limit.unit, used + held));
	const share = of?.users.find((one) => one.name === agent)?.percent ?? "";
	put(percent, isMixed && share && !isSlots(of.limit) ? `${share} ${baseOf(of)}` : share);
}

// What one agent that the reader chose does now: why its calls wait, until when, what it uses.
export function agentText(pool, name, paused) {
	if (!name) return "";
	const agent = pool.agents.find((of) => of.name === name);
	const tickets = pool.tickets.filter((of) => of.agent === name);
	if (!agent && tickets.length === 0) return `${name} has not called on this pool.`;
	const [first] = tickets;
	const waits = first && `${plural(tickets.length, "call")} ${tickets.length === 1 ? "waits"
		: "wait"}, the first at place ${count(first.position)} (${
		whyWaiting(first, pool, paused)}), admitted ${expected(first)}`;
	const uses = pool.limits.map((limit) => [limit, usersOf(pool, limit).find((of) =>
		of.name === name)]).filter(([, of]) => of).map(([limit, { percent }]) =>
		`${percent} of ${shortName(limit)}`).join(", ");
	return `${name}: ${joined("; ", waits ?? "no call waits", agent?.in_flight > 0
		&& `${count(agent.in_flight)} in flight`, uses && `uses ${uses}`)}.`;
}
