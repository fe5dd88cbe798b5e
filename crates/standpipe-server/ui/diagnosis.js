// What a person wants to know of a pool first: its worst state, why calls wait, until when, and what
// to do. Pure: no page, no network.

import { ahead, amount, amountOf, count, expected, joined, limitName, listed, percent, plural,
	reasonText, refusedWith, share, time, whole } from "./words.js";

const taken = (of) => of.used + of.held;
const isSlots = ({ kind }) => kind === "parallel";

// The limit that is closest to full.
export const fullest = ({ limits }) => limits.reduce((most, of) => (most
	&& taken(most) / Math.max(1, most.effective) >= taken(of) / Math.max(1, of.effective)
	? most : of), null);

// The worst state of a pool: how grave (`bad`: no call passes, `warn`, `ok`, `idle`), and in words.
export function stateOf(pool, isStoreDown = false) {
	const { cut_off: offline, unavailable, terminal, pause, waiting, limits } = pool;
	if (offline) return ["warn", offline.mode === "share" ? "on its share" : "not limited"];
	if (unavailable || isStoreDown) return ["bad", "store unavailable"];
	if (!pool.enforce) return ["warn", "shadow mode"];
	if (terminal) return ["bad", "stopped"];
	if (pause) return ["bad", "paused"];
	if (waiting > 0) return ["warn", `${count(waiting)} waiting`];
	// Full is normal use, as of a mutex, until a call waits.
	if (limits.some(({ left }) => left === 0)) return ["ok", "full"];
	if (worstRemark(pool)) return ["warn", "degraded"];
	return pool.in_flight > 0 ? ["ok", "busy"] : ["idle", "idle"];
}

const GRAVE = ["bad", "warn"];
const natural = new Intl.Collator("en", { numeric: true });

// Pools that need attention first, the rest by name; `team2` stands before `team10`.
export function worstFirst(pools, isStoreDown) {
	const rank = (of) => (GRAVE.indexOf(stateOf(of, isStoreDown)[0]) + GRAVE.length + 1)
		% (GRAVE.length + 1);
	return pools.map((of) => [rank(of), of]).sort(([one, a], [other, b]) => one - other
		|| natural.compare(a.pool, b.pool)).map(([, of]) => of);
}

// What each pool does while the store is unavailable, with their names.
export function outageText(pools) {
	const part = (isIn, one, many) => {
		const found = pools.filter(isIn).map(({ pool }) => pool);
		const names = joined(", ", ...found.slice(0, 3), found.length > 3
			&& `${count(found.length - 3)} more`);
		return found.length > 0 && [found.length, `${found.length === 1 ? one : many} (${names})`];
	};
	const mode = (wanted) => ({ cut_off: offline }) => (offline?.mode ?? "closed") === wanted;
	const parts = [part(mode("closed"), "admits no calls", "admit no calls"),
		part(mode("share"), "admits its share", "admit their shares"),
		part(mode("open"), "admits calls without limits", "admit calls without limits")]
		.filter((found) => found);
	return parts.map(([n, text], at) => `${count(n)}${at > 0 ? "" : ` of ${
		plural(pools.length, "pool")}`} ${text}`).join("; ");
}

// Of what an agent's use of a limit is a share: a bucket refills all the time, so its level says
// nothing of who used it, and the share is the agent's part of all use of the period.
export const wholeOf = ({ effective, held, last_period: all }, use) => (all === undefined ? effective
	: Math.max(all + held, taken(use)));

// Who uses most of a limit: `blog 50 %, data 25 %`; of slots `blog (2 slots)`.
export function users(pool, name, most = 3) {
	const limit = pool.limits.find(({ limit: of }) => of === name);
	if (!limit) return "";
	const all = pool.agents.map(({ name: agent, usage = [] }) => [agent, usage.find((of) =>
		of.limit === name)]).filter(([, of]) => of && taken(of) > 0)
		.sort(([a, one], [b, other]) => taken(other) - taken(one) || (a < b ? -1 : 1));
	const texts = all.slice(0, most).map(([agent, of]) => (isSlots(limit)
		? `${agent} (${plural(taken(of), "slot")})` : `${agent} ${share(taken(of), wholeOf(limit, of))}`));
	return joined(", ", ...texts, all.length > most && `${count(all.length - most)} more`);
}

// The agents for which a part of a limit is kept, with their floors.
function keepers({ agents, limits }, limit, besides) {
	const unit = limit?.split(" ")[0];
	const kept = limits.find((of) => of.limit === limit)?.kept ?? [];
	const found = agents.filter(({ name }) => name !== besides && kept.some(({ agent }) =>
		agent === name)).flatMap(({ name, floor }) =>
		floor.filter((of) => !of.includes(" ") || of.startsWith(`${unit} `)).map((of) =>
			`${name} (floor ${of.split(" ").at(-1)})`));
	return found.join(", ");
}

// The agents of the calls ahead in the queue. Its own agent is not named like another one.
const queuedAhead = ({ agent, ahead: names = [], ahead_more: more }) => listed([...names.map((name) =>
	(name === agent ? "its own waiting call" : name)), ...(more > 0 ? [`${count(more)} more`] : [])]);

// Why a call waits, with the names of those it waits for.
export function whyWaiting(ticket, pool, paused) {
	const { reason, limit, short_by: missing, behind, agent, cost } = ticket;
	if (!reason) return "it is admitted next";
	const short = missing > 0 ? `, short by ${amountOf(limit ?? "", missing)}` : "";
	const text = reasonText(reason, limit) + short;
	const first = behind ? `${behind} by fair order` : queuedAhead(ticket);
	switch (reason) {
		case "pause": return paused.startsWith("paused") ? paused : joined(": ", text, paused);
		case "order": return first
			? `behind ${first} for ${limit ? limitName(limit) : "a limit"}${short}` : text;
		case "cap": {
			const cap = pool.agents.find(({ name }) => name === agent)?.cap.join(", ");
			return `${reasonText(reason, limit)}${cap ? ` (${cap})` : ""}${short}`;
		}
		case "floor": return ticket.kept ? `the rest of ${limitName(limit)} is kept for ${
			listed(ticket.kept.map((of) => `${of.agent} (${amount(of.unit, of.units)})`))}${short}` : text;
		case "limit": {
			const of = pool.limits.find((one) => one.limit === limit);
			const by = users(pool, limit);
			if (ticket.alone) {
				return joined("; used by ", `it needs more than is usable of ${limitName(limit)}, so it waits `
					+ "until all of it is free", by);
			}
			if (!of || isSlots(of)) return joined("; in use by ", text, by);
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
	refused: "Wait until the pause ends. Resume ends it now, but the provider may refuse again.",
	order: "Wait for its turn. Give urgent agents a higher priority.",
	zone: "Wait. Give urgent agents priority critical.",
	yield: "Wait. Give urgent agents a higher priority than background.",
	spread: "Wait, or set spread = false to use the quota as fast as possible.",
	limit: "Wait, make calls smaller, or raise the limit if the provider allows more.",
	retry_budget: "Reduce retries in the programs: Standpipe already retries for them.",
	queue_full: "Start fewer calls at once.",
	store: "Check that the store is reachable: standpipe doctor.",
};

function adviceFor({ reason, limit, agent, alone, kept }) {
	if (reason === "cap") return `Wait, or raise the cap of ${agent} in standpipe.toml.`;
	if (reason === "floor") {
		return `Wait, give ${agent} a floor too, or lower the floor of ${
			kept ? listed(kept.map((of) => of.agent)) : "the agent that keeps the rest"}.`;
	}
	if (alone) return "Make the call smaller, or wait until all of the limit is free.";
	if (reason === "limit" && limit === "parallel") {
		return "Wait until a call in flight ends. If its program hangs, settle its lease below.";
	}
	return BY_REASON[reason] ?? "Nothing: this ends by itself.";
}

// What began the running pause or stop: a refusal by the provider, or a person.
export function causeOfPause({ pool, pause, terminal, trouble }, events) {
	if (!pause && !terminal) return "";
	if (!terminal && pause.by) return `paused by ${pause.by} at ${time(pause.at)}`;
	const { incident, streak, overloads } = trouble;
	const last = (isIt) => events.findLast((event) => event.pool === pool && isIt(event));
	if (terminal) {
		const refused = last(({ kind, about }) => kind === "throttle" && about === "terminal");
		const of = refused ?? (incident?.kind === "terminal" ? incident : null);
		return of ? `${of.agent ?? "a call"} ${refusedWith("terminal")} at ${time(of.at)}${
			of.said ? ` (“${of.said}”)` : ""}` : "";
	}
	const began = last(({ kind, until }) => kind === "pause"
		&& Math.abs(Date.parse(until) - Date.parse(pause.until)) < 2_000);
	if (incident && began && Math.abs(Date.parse(incident.at) - Date.parse(began.at)) < 2_000) {
		const row = Math.max(streak, overloads);
		return `${incident.agent ?? "a call"} ${refusedWith(incident.kind)} at ${time(incident.at)}${
			row > 1 ? `, ${count(row)} times in a row` : ""}`;
	}
	return began ? `paused at ${time(began.at)}` : "";
}

const CHECK_STORE = "Check that the store is reachable: standpipe doctor.";

// The summary of a pool: what is so now, when that ends, and what to do.
export function summary(pool, { isStoreDown, paused }) {
	const { cut_off: offline, terminal, pause, waiting, tickets } = pool;
	if (offline) {
		return [`The store does not answer. ${offline.mode === "share"
			? `${offline.among > 1 ? `Each of ${count(offline.among)} processes` : "This process"} admits `
				+ "its share of the limits."
			: "Calls are admitted without shared limits."}`, "when the store answers", CHECK_STORE];
	}
	if (isStoreDown) {
		return ["The store does not answer. No call is admitted.", "when the store answers", CHECK_STORE];
	}
	if (!pool.enforce) {
		return [`Calls are counted and never delayed.${pause ? " Enforced, the pool would be paused."
			: ""}`, "", "Set enforce = true in standpipe.toml to enforce the limits."];
	}
	if (terminal) {
		const { until, for_ms: left, look_ms: probe } = terminal;
		return [`${joined(": ", "No call is admitted. The provider stopped the pool", paused)}.`,
			until ? ahead(until, left) : `when a probe succeeds${
				probe > 0 ? ` (next in ${whole(probe)})` : ""} or you press Resume`, BY_REASON.terminal];
	}
	if (pause) {
		return [`${joined(": ", "No call is admitted", paused)}.`, ahead(pause.until, pause.for_ms),
			pause.by ? BY_REASON.pause : BY_REASON.refused];
	}
	if (waiting > 0 && tickets.length > 0) {
		const [first] = tickets;
		return [`${waiting === 1 ? `${first.agent} waits` : `${count(waiting)} calls wait, ${
			first.agent} first`}: ${whyWaiting(first, pool, paused)}.`, endOf(first), adviceFor(first)];
	}
	const full = pool.limits.find(({ left }) => left === 0);
	if (full) {
		const by = users(pool, full.limit);
		return [joined(" ", `${limitName(full.limit)} is full, no call waits.`,
			by && `${isSlots(full) ? "In use" : "Used"} by ${by}.`),
		isSlots(full) ? "when a call in flight ends" : full.full_again_ms > 0
			? `all of it is free in ${whole(full.full_again_ms)}` : "", ""];
	}
	const [, word, text, ends, advice = "Nothing: this ends by itself."] = worstRemark(pool) ?? [];
	return word ? [`${word} ${text}`, ends, advice] : [calm(pool), "", ""];
}

const worstRemark = (pool) => remarks(pool).find(([grave]) => grave);

// The remarks that the summary does not have already.
export function otherRemarks(pool, [, word]) {
	const first = word === "degraded" ? worstRemark(pool)[1] : "";
	return remarks(pool).filter((remark) => remark[1] !== first);
}

// When a wait ends.
function endOf(ticket) {
	const { until, not_before: bound, waiting_for: event } = ticket;
	if (until || bound || !event) return expected(ticket);
	return `when ${event.replace(/ to be (\w+)$/, " is $1").replace(/ to end$/, " ends")
		.replace(/^the calls .*/, "$& are admitted")}`;
}

function calm(pool) {
	const most = fullest(pool);
	const use = pool.in_flight === 0 ? "No call is in flight."
		: `${plural(pool.in_flight, "call is", "calls are")} in flight; calls pass without waiting.`;
	return joined(" ", use, most && taken(most) > 0 && `Most used: ${limitName(most.limit)}, ${
		isSlots(most) ? `${count(taken(most))} of ${plural(most.effective, "slot")}`
			: share(taken(most), most.effective)}.`);
}

const LESS = "Send fewer or smaller calls, or give urgent agents a higher priority.";

const MORE_LEFT = "when more of the limit is free";

// What else concerns the whole pool: how grave (empty for a note), its subject, a sentence, when it
// ends, and what to do unless it ends by itself.
function remarks(pool) {
	const { learning, trouble } = pool;
	const { probe, coming_back: back, one_at_a_time: one, speed_per_mille: speed, retries } = trouble;
	return [
		learning && ["warn", "Learning:", "the store lost its state. Calls in flight are unknown; "
			+ "everything counts as used.", `in ${whole(learning.for_ms)}`],
		pool.zone === "amber" && ["warn", "Zone amber:",
			"little is left. Background and standard calls are spaced out.", MORE_LEFT, LESS],
		pool.zone === "red" && ["bad", "Zone red:", "almost nothing is left. Background waits, "
			+ "standard calls run once a second, critical calls pass.", MORE_LEFT, LESS],
		pool.breaker === "pre_emptive" && ["warn", "Breaker pre-emptive:",
			"the quota will run out at this rate.", "when calls use less",
			"Send fewer or smaller calls."],
		probe ? ["warn", "After a pause:", ...(probe === "sent"
			? ["one call probes; the rest wait for its answer.", "when the probe succeeds"]
			: ["the next call probes alone.", "when the next call succeeds"])]
			: back && ["warn", "After a pause:", "calls return staggered by priority.",
				`in ${whole(back.for_ms)}`],
		one && ["warn", "One call at a time,", "because several agents got 429s.",
			`after some successful calls, at the latest in ${whole(one.for_ms)}`],
		speed !== null && trouble.ramp && ["warn", "After a 429:", `${percent(speed)} of the shortest `
			+ "rate is usable.", `in ${whole(trouble.ramp.for_ms)}, step by step`],
		trouble.learned_concurrency !== null && ["warn", "Learned:", `the provider accepts ${
			count(trouble.learned_concurrency)} calls at once; one more every minute without a 429.`, ""],
		trouble.cautious !== null && ["", "Learning the limits:", `at most ${
			count(trouble.cautious)} calls unanswered, doubled after each answer.`, ""],
		retries && retries.left < retries.per_minute && ["", "Retries:", `${count(retries.left)} left `
			+ `of ${count(retries.per_minute)} in a minute.`, ""],
		...pool.limits.filter((of) => of.outside > 0).map((of) => ["warn",
			`Use outside Standpipe on ${limitName(of.limit)}:`, `${amount(of.unit, of.outside)}.`, "",
			"Find the program that uses the key on its own: standpipe doctor."]),
		pool.skipped > 0 && ["warn", "Not understood:", `${plural(pool.skipped, "event")} of its log; `
			+ "a newer version of Standpipe wrote there.", "", "Update Standpipe on this machine."],
	].filter((remark) => remark);
}
