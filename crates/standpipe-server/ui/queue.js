// The calls that wait, in order, and those that were not admitted.

import { isLate, whyWaiting } from "./diagnosis.js";
import { attr, h, put, setTime, show } from "./dom.js";
import { Listing, takes, who } from "./listing.js";
import { modeOf } from "./state.js";
import { askAgain, turnedAwaySince, whyTurned } from "./turned.js";
import { shortName } from "./use.js";
import { PACED, callsAhead, count, expectedShort, lasting, plural, soon, time } from "./words.js";

// What a call waits for, in a word or two. The sentence beside it has the whole reason.
const CHIPS = { return_window: "after a pause", yield: "priority", zone: "priority", spread: "pacing",
	hold: "retry delay", probe: "probe", sequential: "one at a time", retry_budget: "retries",
	queue_full: "queue full", pace: "pace", learning: "learning limits", terminal: "stopped",
	deadline: "timed out", not_in_time: "timed out" };

export function chipOf({ reason, limit }) {
	if (!reason) return "next";
	if (reason === "learning" && limit) return "ledger lost";
	const name = limit && shortName({ limit });
	if (name && ["limit", "order", "floor", "cap", "ramp"].includes(reason)) {
		return { cap: "own cap", ramp: "ramp", floor: "floors" }[reason]
			? `${name} (${{ cap: "own cap", ramp: "ramp", floor: "floors" }[reason]})` : name;
	}
	return CHIPS[reason] ?? reason.replace(/_/g, " ");
}

export class Queue extends Listing {
	constructor() {
		super("waiting", "Waiting", "Calls that wait, in order", "", [["place", "n place"],
			["agent", "wide"], ["blocked by", "wide"], ["ahead", "n"], ["admitted", "n when"],
			["wants", "late"], ["waited", "n"], ["gives up", "n"]]);
		this.toggle = h("button", { class: "small", "aria-pressed": "false", text: "Full reasons",
			onclick: () => {
				const isFull = this.root.classList.toggle("reasons");
				attr(this.toggle, "aria-pressed", isFull);
			} });
		this.head.append(this.toggle);
	}

	update(pool, paused, isStoreDown) {
		const isHeld = isStoreDown && !pool.cut_off;
		// Whether the calls that waited have been admitted by their processes is unknown.
		const isUnknown = isHeld && modeOf(pool) !== "closed";
		const [tickets, waiting] = isUnknown ? [[], 0] : [pool.tickets, pool.waiting];
		put(this.note, "Paced calls may pass each other.");
		show(this.note, !isHeld && tickets.filter(({ reason }) => PACED.includes(reason)).length > 1);
		this.rows(tickets, waiting, (of) => `${of.agent} ${of.since} ${of.pid}`, ({ cells }) => {
			cells[2].append(h("span", { class: "chip", "aria-hidden": "true" }),
				h("span", { class: "why" }));
			for (const at of [4, 6]) cells[at].append(h("time"));
		}, (of, { cells }) => {
			who(cells[1], of, pool.pool);
			const [chip, why] = cells[2].children;
			put(chip, isHeld ? "store" : chipOf(of));
			put(why, isHeld ? "the store is unavailable" : whyWaiting(of, pool, paused));
			attr(cells[2], "title", why.textContent);
			setTime(cells[4].firstChild, isHeld ? null : of.until ?? of.expected ?? of.not_before,
				isHeld ? "when the store answers" : expectedShort(of));
			setTime(cells[6].firstChild, of.since, lasting(of.waits_ms));
			const late = !isHeld && isLate(of);
			attr(cells[7], "class", late ? "n failed" : "n");
			const calls = of.reason === "order" ? callsAhead(of) : 0;
			return [count(of.position), null, null, calls > 0 ? plural(calls, "call") : "", null,
				takes(of.cost, pool), null, soon(of.deadline_ms) + (late ? ", before its turn" : "")];
		});
	}
}

const HOUR = 3_600_000;

export class TurnedAway extends Listing {
	constructor() {
		super("turned", "Not admitted, last hour", "Calls that were not admitted, the last first", "",
			[["agent", "wide"], ["calls", "n"], ["why", "wide"], ["last", "n"], ["ask again", "n"]]);
	}

	update(pool, { events }, isStoreDown) {
		const groups = turnedAwaySince(events, pool.pool, Date.parse(pool.at) - HOUR);
		const calls = groups.reduce((sum, of) => sum + of.calls, 0);
		this.rows(groups, calls, ({ key }) => key, (row) => {
			for (const at of [3, 4]) row.cells[at].append(h("time"));
		}, (of, { cells }) => {
			who(cells[0], of, pool.pool);
			setTime(cells[3].firstChild, of.at, time(of.at));
			const [instant, again] = askAgain(of, pool, isStoreDown);
			setTime(cells[4].firstChild, instant, again || "–");
			attr(cells[4], "data-none", again ? null : "");
			return [null, count(of.calls), whyTurned(of), null, null];
		});
		show(this.more, false);
	}
}
