// What a person wants to know of a pool first: its worst state, why calls wait, until when, and what
// to do. Pure: no page, no network.

import { ahead, amount, amountOf, count, expected, joined, percent, plural, reasonText, refusedWith,
	time, whole } from "./words.js";

const share = (part, whole) => `${Math.round(100 * part / Math.max(1, whole))} %`;
const taken = (of) => of.used + of.held;

// The limit that is closest to full.
export const fullest = ({ limits }) => limits.reduce((most, of) => (most
	&& taken(most) / Math.max(1, most.effective) >= taken(of) / Math.max(1, of.effective)
	? most : of), null);

// The worst state of a pool: how grave (`bad`: no call passes, `warn`, `ok`, `idle`), and in words.
export function stateOf(pool, isStoreDown = false) {
	const { cut_off: offline, unavailable, terminal, pause, waiting, limits } = pool;
	if (offline || unavailable || isStoreDown) return ["bad", "store unavailable"];
	if (!pool.enforce) return ["warn", "shadow mode"];
	if (terminal) return ["bad", "stopped"];
	if (pause) return ["bad", "paused"];
	if (waiting > 0) return ["warn", `${count(waiting)} waiting`];
	if (limits.some(({ left }) => left === 0)) return ["warn", "full"];
	if (worstRemark(pool)) return ["warn", "degraded"];
	return pool.in_flight > 0 ? ["ok", "active"] : ["idle", "idle"];
}

// Who uses most of a limit: `blog 50 %, data 25 %`.
export function users(pool, name, most = 3) {
	const limit = pool.limits.find(({ limit: of }) => of === name);
	if (!limit) return "";
	const all = pool.agents.map(({ name: agent, usage = [] }) => [agent, usage.find((of) =>
		of.limit === name)]).filter(([, of]) => of)
		.sort(([a, one], [b, other]) => taken(other) - taken(one) || (a < b ? -1 : 1));
	const texts = all.slice(0, most).map(([agent, of]) => (limit.kind === "parallel"
		? `${agent} ${count(taken(of))}` : `${agent} ${share(taken(of), limit.effective)}`));
	return joined(", ", ...texts, all.length > most && `${count(all.length - most)} more`);
}

// The agents for which a part of a limit is kept, with their floors.
function keepers({ agents }, limit, besides) {
	const unit = limit?.split(" ")[0];
	const found = agents.filter(({ name }) => name !== besides).flatMap(({ name, floor }) =>
		floor.filter((of) => !of.includes(" ") || of.startsWith(`${unit} `)).map((of) =>
			`${name} (floor ${of.split(" ").at(-1)})`));
	return found.join(", ");
}

// Why a call waits, with the names of those it waits for.
export function whyWaiting(ticket, pool, paused) {
	const { reason, limit, short_by: missing, behind, agent, position, cost } = ticket;
	if (!reason) return "it is admitted next";
	const short = missing > 0 ? `, short by ${amountOf(limit ?? "", missing)}` : "";
	const text = reasonText(reason, limit) + short;
	const first = behind ?? pool.tickets.find((of) => of.position === position - 1)?.agent;
	switch (reason) {
		case "pause": return paused.startsWith("paused") ? paused : joined(": ", text, paused);
		case "order": return first ? `behind ${first} for ${limit ?? "a limit"}${short}` : text;
		case "cap": return joined(": ", text, pool.agents.find(({ name }) => name === agent)?.cap
			.join(", "));
		case "floor": return joined("; kept for ", text, keepers(pool, limit, agent));
		case "limit": {
			const of = pool.limits.find((one) => one.limit === limit);
			const by = users(pool, limit);
			if (!of || of.kind === "parallel") return joined("; in use by ", text, by);
			// What is short beyond the units that are left is kept by floors.
			const kept = missing - Math.max(0, (cost[of.unit] ?? 0) - of.left);
			const who = kept > 0 && keepers(pool, limit, agent);
			return joined("; ", text, who && `${amount(of.unit, kept)} kept for ${who}`,
				by && `used by ${by}`);
		}
		default: return text;
	}
}

const BY_REASON = {
	terminal: "Fix the cause at the provider (key, billing), then press Resume.",
	never: "Make the call smaller, or raise the limit in standpipe.toml.",
	pause: "Wait until the pause ends, or press Resume to end it now.",
	cap: "Wait, or raise the cap of the agent in standpipe.toml.",
	floor: "Wait, or lower the floor of the agent that keeps the rest.",
	order: "Wait for its turn. Give urgent agents a higher priority.",
	zone: "Wait. Give urgent agents priority critical.",
	yield: "Wait. Give urgent agents a higher priority than background.",
	spread: "Wait, or set spread = false to use the quota as fast as possible.",
	limit: "Wait, make calls smaller, or raise the limit if the provider allows more.",
	retry_budget: "Reduce retries in the programs: Standpipe already retries for them.",
	queue_full: "Start fewer calls at once.",
	store: "Check that the store is reachable: standpipe doctor.",
};

function adviceFor({ reason, limit }) {
	if (reason === "limit" && limit === "parallel") {
		return "Wait until a call in flight ends. If its program hangs, settle its lease below.";
	}
	return BY_REASON[reason] ?? "Nothing: this ends by itself.";
}

// What began the running pause: a refusal by the provider, or a person.
export function causeOfPause({ pool, pause, trouble }, events) {
	if (!pause) return "";
	const began = events.findLast((event) => event.pool === pool && event.kind === "pause"
		&& Math.abs(Date.parse(event.until) - Date.parse(pause.until)) < 2_000);
	if (pause.by) return `paused by ${pause.by} at ${time(pause.at)}`;
	const { incident, streak, overloads } = trouble;
	if (incident && began && Math.abs(Date.parse(incident.at) - Date.parse(began.at)) < 2_000) {
		const row = Math.max(streak, overloads);
		return `${incident.agent ?? "a call"} ${refusedWith(incident.kind)} at ${time(incident.at)}${
			row > 1 ? `, ${count(row)} times in a row` : ""}`;
	}
	return began ? `paused at ${time(began.at)}` : "";
}

// The summary of a pool: what is so now, until when, and what to do.
export function summary(pool, { isStoreDown, paused }) {
	const { cut_off: offline, terminal, pause, waiting, tickets } = pool;
	if (isStoreDown && !offline) {
		return ["The store does not answer. Calls are not admitted; these figures are old.",
			"the store answers", "Check that the store is reachable: standpipe doctor."];
	}
	if (offline) {
		return [`The store has not answered for ${whole(offline.for_ms)}. ${offline.mode === "share"
			? `Each of ${plural(offline.among, "process", "processes")} uses its share of the limits.`
			: "Calls are admitted without shared limits."}`, "the store answers",
		"Check that the store is reachable: standpipe doctor."];
	}
	if (!pool.enforce) {
		return [`Calls are counted and never delayed.${pause ? " Enforced, the pool would be paused."
			: ""}`, "", "Set enforce = true in standpipe.toml to enforce the limits."];
	}
	if (terminal) {
		return ["The provider stopped the pool. No call is admitted.", terminal.until
			? `${ahead(terminal.until)} (${whole(terminal.for_ms)})` : "Resume is pressed",
		BY_REASON.terminal];
	}
	if (pause) {
		return [`${joined(": ", "No call is admitted", paused)}.`,
			`${ahead(pause.until)} (${whole(pause.for_ms)})`, BY_REASON.pause];
	}
	if (waiting > 0 && tickets.length > 0) {
		const [first] = tickets;
		return [`${plural(waiting, "call waits", "calls wait")}. First is ${first.agent}: ${
			whyWaiting(first, pool, paused)}.`, endOf(first), adviceFor(first)];
	}
	const full = pool.limits.find(({ left }) => left === 0);
	if (full) {
		const by = users(pool, full.limit);
		return [`${full.limit} is full. The next call waits.${by ? ` Used by ${by}.` : ""}`,
			full.kind === "parallel" ? "a call in flight ends"
				: `all of it is free in ${whole(full.full_again_ms)}`,
			adviceFor({ reason: "limit", limit: full.limit })];
	}
	const [, word, text, advice = "Nothing: this ends by itself."] = worstRemark(pool) ?? [];
	return word ? [`${word} ${text}`, "", advice] : [calm(pool), "", ""];
}

const worstRemark = (pool) => remarks(pool).find(([grave]) => grave);

// The remarks that the summary does not have already.
export function otherRemarks(pool, [, word]) {
	const first = word === "degraded" ? worstRemark(pool)[1] : "";
	return remarks(pool).filter((remark) => remark[1] !== first);
}

// When a wait ends, to be read after “until”.
function endOf(ticket) {
	const { until, not_before: bound, waiting_for: event } = ticket;
	if (until) return `${ahead(until)} (${whole(ticket.until_ms)})`;
	if (bound || !event) return expected(ticket);
	return event.replace(/ to be (\w+)$/, " is $1").replace(/ to end$/, " ends")
		.replace(/^the calls .*/, "$& are admitted");
}

function calm(pool) {
	const most = fullest(pool);
	const use = pool.in_flight === 0 ? "No call is in flight."
		: `${plural(pool.in_flight, "call is", "calls are")} in flight; calls pass without waiting.`;
	return joined(" ", use, most && taken(most) > 0
		&& `Most used: ${most.limit}, ${share(taken(most), most.effective)}.`);
}

const LESS = "Send fewer or smaller calls, or give urgent agents a higher priority.";

// What else concerns the whole pool: how grave (empty for a note), its subject, a sentence, and what
// to do unless it ends by itself.
function remarks(pool) {
	const { learning, trouble } = pool;
	const { probe, coming_back: back, one_at_a_time: one, speed_per_mille: speed, retries } = trouble;
	return [
		learning && ["warn", "Learning:", "the store lost its state. Calls in flight are unknown for "
			+ `another ${whole(learning.for_ms)}; everything counts as used.`],
		pool.terminal?.look_ms != null && ["warn", "Probe:",
			`one call probes in ${whole(pool.terminal.look_ms)}.`],
		pool.zone === "amber" && ["warn", "Zone amber:",
			"little is left. Background and standard calls are spaced out.", LESS],
		pool.zone === "red" && ["bad", "Zone red:", "almost nothing is left. Background waits, "
			+ "standard calls run once a second, critical calls pass.", LESS],
		pool.breaker === "pre_emptive" && ["warn", "Breaker pre-emptive:",
			"the quota will run out at this rate.", "Request less, or use a fallback pool."],
		probe ? ["warn", "After a pause:", probe === "sent"
			? "one call probes; the rest wait for its answer." : "the next call probes alone."]
			: back && ["warn", "After a pause:", `the rest return within ${
				whole(back.for_ms)}, staggered by priority.`],
		one && ["warn", "One call at a time", `for at most ${whole(one.for_ms)}, because several `
			+ "agents got 429s."],
		speed !== null && ["warn", "After a 429:", `${percent(speed)} of the shortest rate is `
			+ "usable; it doubles step by step."],
		trouble.learned_concurrency !== null && ["warn", "Learned:", `the provider accepts ${
			count(trouble.learned_concurrency)} calls at once; one more every minute without a 429.`],
		trouble.cautious !== null && ["", "Learning the limits:", `at most ${
			count(trouble.cautious)} calls unanswered, doubled after each answer.`],
		retries && retries.left < retries.per_minute && ["", "Retries:", `${count(retries.left)} left `
			+ `of ${count(retries.per_minute)} in a minute.`],
		...pool.limits.filter((of) => of.outside > 0).map((of) => ["warn",
			`Use outside Standpipe on ${of.limit}:`, `${amount(of.unit, of.outside)}.`,
			"Find the program that uses the key on its own: standpipe doctor."]),
		pool.skipped > 0 && ["warn", "Not understood:", `${plural(pool.skipped, "event")} of its log; `
			+ "a newer version of Standpipe wrote there.", "Update Standpipe on this machine."],
	].filter((remark) => remark);
}
