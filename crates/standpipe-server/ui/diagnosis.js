// What a person wants to know of a pool first: its worst state, why calls wait, until when, and
// what to do, in the words of `standpipe status`. Pure: no page, no network.

import { ahead, amount, callsAhead, count, expected, joined, limitName, listed, percent, plural,
	reasonText, refusedWith, share, shortage, time, whole } from "./words.js";

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
	if (slowedBy(pool)) return ["warn", "degraded"];
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
	return parts.map(([n, text], at) => joined(" ", count(n), at === 0
		&& `of ${plural(pools.length, "pool")}`, text)).join("; ");
}

// Of what an agent's use of a limit is a share: what the limit allows in its period. A bucket
// allows what it refills; its level is no use of anybody, because it refills all the time.
export const usableOf = ({ effective, refill }) => Math.max(1, refill ?? effective);

// Who uses most of a limit: `blog 50 %, data 25 %`; of slots `blog (2 slots)`.
export function users(pool, name, most = 3) {
	const limit = pool.limits.find(({ limit: of }) => of === name);
	if (!limit) return "";
	const all = pool.agents.map(({ name: agent, usage = [] }) => [agent, usage.find((of) =>
		of.limit === name)]).filter(([, of]) => of && taken(of) > 0)
		.sort(([a, one], [b, other]) => taken(other) - taken(one) || (a < b ? -1 : 1));
	const texts = all.slice(0, most).map(([agent, of]) => (isSlots(limit)
		? `${agent} (${plural(taken(of), "slot")})`
		: `${agent} ${share(taken(of), usableOf(limit))}`));
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

// The calls ahead in the queue, by their agents. Its own agent is not named like another one.
function queuedBehind(ticket) {
	const { agent, ahead: names = [], ahead_more: more = 0, limit } = ticket;
	const calls = callsAhead(ticket);
	const agents = listed([...names.map((name) => (name === agent ? "its own agent" : name)),
		...(more > 0 ? [`${plural(more, "more agent")}`] : [])]);
	const text = !agents ? "behind other calls" : calls <= names.length && more === 0
		? `behind ${agents}` : `behind ${count(calls)} calls (${agents})`;
	return limit ? `${text} in the queue for ${limitName(limit)}`
		: `${text}, until a call in flight is answered`;
}

// Why a call waits, with the names of those it waits for.
export function whyWaiting(ticket, pool, paused = "") {
	const { reason, limit, short_by: missing, behind, agent, cost, kept: floors,
		in_use_by: holders = [] } = ticket;
	if (!reason) return "it is next";
	const short = missing > 0 ? ` (short by ${shortage(limit ?? "", missing)})` : "";
	const text = reasonText(reason, limit, shortage(limit ?? "", missing));
	const of = pool.limits.find((one) => one.limit === limit);
	switch (reason) {
		case "pause": return ticket.paused ? pausedBy(ticket.paused) : joined(": ", text, paused);
		case "order": return behind ? `behind ${behind} by fair order for ${nameOf(limit)}`
			: queuedBehind(ticket);
		case "cap": {
			const cap = pool.agents.find(({ name }) => name === agent)?.cap.join(", ");
			return joined(": cap ", text + short, cap);
		}
		case "floor": return floors?.length > 0 ? `the rest of ${nameOf(limit)} is kept: ${
			floors.map((one) => `${shortage(one.unit, one.units)} for the floor of ${
				one.agent}`).join(", ")}` : text;
		case "limit": {
			const by = users(pool, limit);
			if (ticket.alone) {
				return joined("; used by ", `it takes more than the usable part of ${nameOf(limit)}, `
					+ "so it waits until nothing else is charged there", by);
			}
			if (!of || isSlots(of)) return joined(", in use by ", text + short, listed(holders));
			// What is short beyond the units that are left is kept by floors.
			const kept = missing - Math.max(0, (cost[of.unit] ?? 0) - of.left);
			const who = kept > 0 && keepers(pool, limit, agent);
			return joined("; ", text + short, who && `${amount(of.unit, kept)} kept for ${who}`,
				by && `used by ${by}`);
		}
		default: return text;
	}
}

const nameOf = (limit) => (limit ? limitName(limit) : "a limit");

// `paused until 17:28:00 by ops at 16:58:00`, `paused: blog got a 429 (quota) at 16:58:00`.
const pausedBy = ({ by, at, until, refusal }) => `paused${until ? ` until ${time(until)}` : ""}${
	refusal ? `: ${by} ${refusedWith(refusal)}` : ` by ${by}`} at ${time(at)}`;

const END = "Nothing to do; it ends by itself.";
const BY_REASON = {
	terminal: "Fix the account at the provider (credit, spend limit, key), then press Resume.",
	never: "Send a smaller call, or raise the limit.",
	pause: "Wait until the pause ends, or press Resume to end it now.",
	refused: "Wait until the pause ends. Resume ends it now, but the provider may refuse again.",
	order: "Wait, or give urgent calls priority critical.",
	zone: "Use priority critical for calls that must not wait, or set a floor.",
	yield: "Raise its priority if it must run now.",
	spread: "Raise its priority, or set spread = false in the pool.",
	limit: "Wait; request less; or raise the limit if the provider allows more.",
	return_window: "Wait; calls return within seconds after the pause.",
	ramp: "Wait; more is usable with each period.",
	pace: "Nothing to do; the next call follows soon.",
	probe: "Nothing to do; a lost probe is replaced.",
	sequential: "Nothing to do; it ends after some successful calls.",
	hold: "Nothing to do; it ends with that pause.",
	retry_budget: "Switch off the retries of the SDK (max_retries=0).",
	learning: "Wait, or state the limits in standpipe.toml.",
	queue_full: "Send fewer at once.",
	deadline: "Give it a longer timeout.",
	store: "Check that the store is reachable: standpipe doctor.",
};

// What to do about a waiting call; a stopped process that holds a slot comes first.
function adviceFor({ reason, limit, agent, alone, priority }, { leases = [] }) {
	if (reason === "cap") return `Wait, or raise cap of ${agent} in standpipe.toml.`;
	if (reason === "floor") return `Wait, or give ${agent} a floor too, in standpipe.toml.`;
	if (reason === "order" && priority === "critical") {
		return "Wait; calls of the highest priority go in order.";
	}
	if (alone) return "Send a smaller call, or wait until the limit is free.";
	if (reason === "learning" && limit) {
		return "Nothing to do; running processes report their calls meanwhile.";
	}
	if (reason === "limit" && limit === "parallel") {
		const stopped = [...new Set(leases.filter((of) => of.stopped).map(({ pid }) => pid))];
		if (stopped.length > 0) {
			return `${stopped.slice(0, 3).map((pid) => `Process ${pid} holds a lease and is stopped `
				+ `(kill -CONT ${pid} resumes it, kill -9 ${pid} ends it)`).join("; ")}.`;
		}
		return "Wait for a call to end, or raise parallel if the provider allows more. If a program "
			+ "hangs, settle its lease below.";
	}
	return BY_REASON[reason] ?? END;
}

// What began the running pause or stop: a refusal by the provider, or a person.
export function causeOfPause({ pool, pause, terminal, trouble }, events) {
	if (!pause && !terminal) return "";
	const { incident, streak, overloads } = trouble;
	if (terminal) {
		const refused = events.findLast((event) => event.pool === pool && event.kind === "throttle"
			&& event.about === "terminal");
		const of = refused ?? (incident?.kind === "terminal" ? incident : null);
		return of ? `${of.agent ?? "a call"} ${refusedWith("terminal")} at ${time(of.at)}${
			of.said ? ` (“${of.said}”)` : ""}` : "";
	}
	const who = incident?.agent ?? "a call";
	if (pause.by) {
		return joined("; ", `paused by ${pause.by} at ${time(pause.at)}`, incident
			&& `the provider refused ${who} at ${time(incident.at)}`);
	}
	if (!incident) return "";
	const row = Math.max(streak, overloads);
	return joined(", ", `${who} ${refusedWith(incident.kind)} at ${time(incident.at)}`, row > 1
		&& `refused ${row === 2 ? "twice" : `${count(row)} times`} in a row`);
}

const CHECK_STORE = "Check that the store is reachable: standpipe doctor.";

// The summary of a pool: what is so now, when that ends, and what to do.
export function summary(pool, { isStoreDown, paused }) {
	const { cut_off: offline, terminal, pause, waiting, tickets } = pool;
	if (offline) {
		return [`The store does not answer. ${offline.mode === "share"
			? `${offline.among > 1 ? `Each of ${count(offline.among)} processes` : "This process"} `
				+ "admits its share of the limits."
			: "Calls are admitted without shared limits."}`, "when the store answers", CHECK_STORE];
	}
	if (isStoreDown) {
		return ["The store does not answer. No call is admitted.", "when the store answers",
			CHECK_STORE];
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
			pool.trouble.incident || !pause.by ? BY_REASON.refused : BY_REASON.pause];
	}
	if (waiting > 0 && tickets.length > 0) {
		const [first] = tickets;
		return [`${waiting === 1 ? `${first.agent} waits` : `${count(waiting)} calls wait, ${
			first.agent} first`}: ${whyWaiting(first, pool, paused)}.`, endOf(first),
		adviceFor(first, pool)];
	}
	const full = pool.limits.find(({ left }) => left === 0);
	if (full) {
		const by = users(pool, full.limit);
		return [joined(" ", `${limitName(full.limit)} is full, no call waits.`,
			by && `${isSlots(full) ? "In use" : "Used"} by ${by}.`),
		isSlots(full) ? "when a call in flight ends" : full.full_again_ms > 0
			? `all of it is free in ${whole(full.full_again_ms)}` : "", ""];
	}
	const slow = slowedBy(pool);
	return slow ? [`${slow.head} ${slow.text}`, slow.ends ?? "", slow.advice ?? END]
		: [calm(pool), "", ""];
}

// What makes the pool slower than its limits allow.
const slowedBy = (pool) => remarks(pool).find(({ isSlow }) => isSlow);

// The remarks that the summary does not have already.
export function otherRemarks(pool, [, word]) {
	const first = word === "degraded" ? slowedBy(pool).head : "";
	return remarks(pool).filter(({ head }) => head !== first);
}

// When a wait ends.
function endOf(ticket) {
	const { until, expected: forecast, not_before: bound, waiting_for: event } = ticket;
	if (until || forecast || bound || !event) return expected(ticket);
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

// What else concerns the whole pool: its level (empty for a note), whether it slows calls, a head,
// a sentence, when it ends, and what to do unless it ends by itself.
function remarks(pool) {
	const { learning, recovering, trouble, limits } = pool;
	const { probe, coming_back: back, one_at_a_time: one, speed_per_mille: speed, retries, ramp,
		learned_concurrency: learned, cautious } = trouble;
	const slow = { level: "warn", isSlow: true };
	const isSoon = pool.breaker === "pre_emptive" && pool.waiting === 0
		&& !limits.some((of) => of.left === 0);
	return [
		learning && { ...slow, head: "The store lost the ledger:", text: "calls in flight are unknown, "
			+ "and everything counts as used.", ends: ahead(learning.until, learning.for_ms) },
		recovering && { level: "warn", head: "After the loss of the ledger:", text: "its rates count as "
			+ "full and return step by step.", ends: ahead(recovering.until, recovering.for_ms) },
		pool.zone === "amber" && { ...slow, head: "Zone amber:", text: "while a higher priority is "
			+ "active, background and standard calls are spaced out.", ends: MORE_LEFT, advice: LESS },
		pool.zone === "red" && { ...slow, level: "bad", head: "Zone red:", text: "while a higher "
			+ "priority is active, background waits and standard gets one call a second.",
		ends: MORE_LEFT, advice: LESS },
		isSoon && { level: "warn", head: "Forecast:",
			text: "quota will run out at this rate; send fewer or smaller calls." },
		probe ? { ...slow, head: "After a pause:", ...(probe === "sent"
			? { text: "the first call is in flight; the rest wait for its answer.",
				ends: "when the probe succeeds" }
			: { text: "the next call probes alone.", ends: "when the next call succeeds" }) }
			: back && { ...slow, head: "After a pause:", text: "callers return staggered by priority.",
				ends: ahead(back.until, back.for_ms) },
		one && { ...slow, head: "Several agents were throttled:", text: "one call at a time.",
			ends: `after some successful calls, in ${whole(one.for_ms)} at most` },
		speed !== null && ramp && { ...slow, head: "Ramp after a pause:", text: `${percent(speed)} of ${
			listed(limits.filter((of) => of.ramp).map((of) => limitName(of.limit))) || "the shortest rate"
		} is usable, doubling with each period.`, ends: ahead(ramp.until, ramp.for_ms) },
		learned !== null && { level: "warn", head: "Learned:", text: `the provider accepts ${
			plural(learned, "call")} at once; one more after each minute without a 429.` },
		cautious !== null && { level: "", head: "No limits known yet:", text: `at most ${
			plural(cautious, "call")} in flight, doubling with each answer.` },
		retries && retries.left < retries.per_minute && { level: "", head: "Retries:", text: `${
			count(retries.left)} left of ${count(retries.per_minute)} in a minute.` },
		...limits.filter((of) => of.outside > 0).map((of) => ({ level: "warn", head: "Outside use:",
			text: `${amount(of.unit, of.outside)} of ${limitName(of.limit)} did not go through Standpipe; `
				+ "see standpipe doctor." })),
		pool.skipped > 0 && { level: "warn", head: "Not understood:", text: `${
			plural(pool.skipped, "event")} of its log; a newer version of Standpipe wrote there. `
			+ "Update Standpipe on this machine." },
	].filter((remark) => remark);
}
