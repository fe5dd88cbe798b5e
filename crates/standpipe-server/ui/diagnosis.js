// What a person wants to know of a pool first: why calls wait, until when, and what to do, in the
// words of `standpipe status`. Pure: no page, no network.

import { adviceFor, BY_REASON, CHECK_STORE, END, FIND_OTHERS, lossRemedy, shadowAdvice }
	from "./advice.js";
import { isActive, isPaused, modeOf } from "./state.js";
import { fullest, isSlots, quotaOf, share, useOf, userNames, usersOf } from "./use.js";
import { PACED, ahead, amount, callsAhead, count, expected, inParentheses, instantOf, joined, limitName,
	listed, percent, plural, reasonText, refusedWith, shortage, soon, time, whole } from "./words.js";

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
	const { agent, behind, ahead: names = [], ahead_more: more = 0, limit } = ticket;
	const calls = callsAhead(ticket);
	// One call each: the names are the calls.
	const isEach = calls <= names.length && more === 0;
	const own = isEach ? "its own earlier call" : "its own";
	const agents = listed([...names.map((name) => (name === agent ? own : name)),
		...(more > 0 ? [`${plural(more, "more agent")}`] : [])]);
	const text = !agents ? "behind other calls" : isEach ? `behind ${agents}`
		: `behind ${count(calls)} calls (${agents})`;
	return limit ? `${text} ${behind ? "by fair order" : "in the queue"} for ${limitName(limit)}`
		: `${text}, until a call in flight is answered`;
}

// Why a call waits, with the names of those it waits for: first the rule that denies it, then the one
// that decides the time. A call on several pools may wait on another one.
export function whyWaiting(ticket, pool, paused = "") {
	const { next, on } = ticket;
	const last = next && joined(", in use by ", reasonText(next.reason, next.limit),
		listed(next.in_use_by ?? []));
	return joined(": ", on && `on ${on}`, joined("; then ", firstReason(ticket, pool, paused), last));
}

function firstReason(ticket, pool, paused) {
	const { reason, limit, short_by: missing, behind, agent, cost, kept: floors,
		in_use_by: holders = [] } = ticket;
	if (!reason) return ticket.stopped ? "its turn has come, but its process is stopped" : "it is next";
	const short = missing > 0 ? ` (short by ${shortage(limit ?? "", missing)})` : "";
	const text = reasonText(reason, limit, shortage(limit ?? "", missing));
	const of = pool.limits.find((one) => one.limit === limit);
	switch (reason) {
		case "pause": return ticket.paused ? pausedBy(ticket.paused) : joined(": ", text, paused);
		case "zone": case "yield": case "spread":
			return text.replace("higher priorities are", ticket.superior ? `${ticket.superior} is` : "$&");
		case "order": return behind && !ticket.calls_ahead ? `behind ${behind} by fair order for ${nameOf(limit)}`
			: queuedBehind(ticket);
		case "cap": {
			const cap = pool.agents.find(({ name }) => name === agent)?.cap.join(", ");
			return joined(": cap ", text + short, cap);
		}
		case "floor": return floors?.length > 0 ? `the rest of ${nameOf(limit)} is kept: ${
			floors.map((one) => `${shortage(one.unit, one.units)} for the floor of ${
				one.agent}`).join(", ")}` : text;
		case "limit": {
			const by = of ? userNames(pool, of) : "";
			if (ticket.alone) {
				return joined("; used by ", `it takes more than the usable part of ${nameOf(limit)}, `
					+ "so it waits until nothing else is charged there", by);
			}
			if (!of || isSlots(of)) return joined(", in use by ", text + short, listed(holders));
			const use = useOf(pool, of);
			if (use.others > 0) return `${text}${short}; ${takenBy(pool, of, use)}`;
			// What is short beyond the units that are left is kept by floors.
			const kept = missing - Math.max(0, (cost[of.unit] ?? 0) - of.left);
			const who = kept > 0 && keepers(pool, limit, agent);
			return joined("; ", text + short, who && `${amount(of.unit, kept)} kept for ${who}`,
				by && `used by ${by}`);
		}
		default: return text;
	}
}

// `4,925 of 5,000 were used outside Standpipe, 75 by triage`.
function takenBy(pool, limit, { others }) {
	const text = (n) => amount(limit.unit, n);
	const agents = usersOf(pool, limit).filter(({ isOutside }) => !isOutside);
	const by = agents.slice(0, 3).map(({ name, n }) => `${text(n)} by ${name}`);
	return `${text(others)} of ${text(quotaOf(limit))} were used outside Standpipe${
		by.length > 0 ? `, ${listed(by)}` : ""}`;
}

const nameOf = (limit) => (limit ? limitName(limit) : "a limit");

// `paused until 17:28:00 by ops at 16:58:00`, `paused: blog got a 429 (quota) at 16:58:00`.
const pausedBy = ({ by, at, until, refusal }) => `paused${until ? ` until ${time(until)}` : ""}${
	refusal ? `: ${by} ${refusedWith(refusal)}` : ` by ${by}`} at ${time(at)}`;

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

// The summary of a pool: what is so now, when that ends, what to do, and the word for the second.
// `turned` is about calls that were not admitted, `shadowed` about those that would have waited,
// `lastRead` when the store was read last, `reasons` those of the first call that alternate.
export function summary(pool, { isStoreDown, lastRead, paused, turned = "", shadowed = "",
	reasons = pool.tickets?.slice(0, 1) }) {
	const { terminal, pause, waiting, tickets } = pool;
	if (pool.cut_off || isStoreDown) return ofOutage(pool, lastRead);
	if (!pool.enforce) {
		return [joined(" ", "Calls are counted and never delayed.", shadowed,
			pause && "Enforced, the pool would be paused."), "", shadowAdvice(pool)];
	}
	if (terminal) {
		const { until, for_ms: left, look_ms: probe } = terminal;
		return [joined(" ", `${joined(": ", "No call is admitted. The provider stopped the pool",
			paused)}.`, turned), until ? ahead(until, left) : `when a probe succeeds${
			probe > 0 ? ` (next ${soon(probe)})` : ""} or you press Resume`, BY_REASON.terminal];
	}
	if (pause) {
		return [joined(" ", `${joined(": ", "No call is admitted", paused)}.`, turned),
			ahead(pause.until, pause.for_ms),
			pool.trouble.incident || !pause.by ? BY_REASON.refused : BY_REASON.pause];
	}
	if (waiting > 0 && tickets.length > 0) return ofWaiting(pool, paused, turned, reasons);
	const full = fullOf(pool);
	const lost = full && lossOf(pool, isSlots(full));
	if (lost) return [joined(" ", lost.head, lost.text, "No call waits.", turned), "", lossRemedy(pool)];
	if (full) {
		const by = userNames(pool, full);
		return [joined(" ", `${limitName(full.limit)} is full, no call waits.`,
			by && `${isSlots(full) ? "In use" : "Used"} by ${by}.`, turned),
		isSlots(full) ? "when a call in flight ends" : full.full_again_ms > 0
			? `all of it is free ${soon(full.full_again_ms)}` : "",
		useOf(pool, full).others > 0 ? FIND_OTHERS : ""];
	}
	const slow = isActive(pool) && slowedBy(pool);
	return slow ? [joined(" ", slow.head, slow.text, turned), slow.ends ?? "", slow.advice ?? END]
		: [joined(" ", calm(pool), turned), "", ""];
}

const fullOf = ({ limits }) => limits.find(({ left }) => left === 0);

// What each process does while the store is unavailable.
const WITHOUT_STORE = {
	closed: () => "No call is admitted: calls wait until their timeout, then fail (503, exit code 69)",
	open: () => "Processes admit calls without limit",
	share: (among) => `${among > 1 ? `Each of ${count(among)} processes` : "Each running process"
	} admits its share of the limits; one that starts now admits no call (503, exit code 69)`,
};

function ofOutage(pool, lastRead) {
	const { cut_off: offline, pause } = pool;
	const mode = modeOf(pool);
	const what = WITHOUT_STORE[mode](offline?.among);
	const text = mode === "closed" ? `${what}.` : joined(" ", isPaused(pool)
		? `No call is admitted until the pause ends at ${time(pause.until)}. Then: ${
			what[0].toLowerCase()}${what.slice(1)}.` : `${what}.`, lastRead
		&& `Use since ${time(lastRead)} is unknown.`, offline && "The figures are of this daemon’s calls.");
	return [`The store does not answer. ${text}`, "when the store answers", CHECK_STORE];
}

// The call that is admitted next, and the one with the latest instant. One behind others in the queue
// is not next, nor is one that gives up before.
export function nextAndLast(tickets) {
	const heads = tickets.filter(({ reason }) => reason !== "order");
	const able = heads.filter((of) => !isLate(of));
	const next = [able, heads, tickets].find(({ length }) => length > 0).reduce((best, of) =>
		(earliest(of) < earliest(best) ? of : best));
	return [next, tickets.reduce((last, of) => (boundOf(of) > boundOf(last) ? of : last))];
}

// The first waiting call, why it waits, and which call is next.
function ofWaiting(pool, paused, turned, reasons) {
	const { waiting, tickets } = pool;
	const [first] = tickets;
	const lost = lossRemedy(pool);
	const head = waiting === 1 ? `${first.agent} waits`
		: `${count(waiting)} calls wait, ${first.agent} first`;
	const now = joined(" ", `${head}: ${inTurn(reasons, pool, paused)}.`, turned);
	const [next, last] = nextAndLast(tickets);
	const name = next === first ? next.agent : `${next.agent} (place ${count(next.position)})`;
	if (isLate(next)) {
		const limit = pool.limits.find((of) => of.limit === next.limit);
		const find = limit && useOf(pool, limit).others > 0 && FIND_OTHERS;
		return [now, `${name} ${givesUp(next)}`, lost || joined(" ", find, longerFor(next)), "Next", "late"];
	}
	// What to do is about the same call and rule as what holds now.
	const [{ agent, reason, limit }] = reasons;
	return [now, joined("; ", `${name} ${expected(next)}`, tickets.length === waiting
		&& boundOf(last) > boundOf(next) && last.reason !== "order" && !isLate(last)
		&& tickets.every((of) => of.reason === null || instantOf(of).at)
		&& `${last.agent} last, ${expected(last)}`), lost || adviceFor(reasons[0], pool), "Next",
	`${agent} ${reason} ${limit}`];
}

const givesUp = (late) => `gives up ${soon(late.deadline_ms)}, before its turn: ${expected(late)}`;
// A bound alone moves on while others are served before.
const longerFor = (late) => (late.until ?? late.expected ? `Cancel the call, or raise its --timeout above ${
	whole(late.waits_ms + boundOf(late))}.` : "Cancel the call, or raise its priority or its --timeout.");

// A rule that denied the first call so lately is named beside the one that denies it now, if they
// alternate: the sentence must not change with each of them.
const TURN = 5_000;

// Why the first call waits, over time.
export class Reasons {
	#call = "";
	#seen = new Map(); // the call as each rule denied it, how often that began, and when it was last
	#current = "";

	// The call as the rules that alternate deny it, in the order in which they began.
	of(ticket, now = Date.now()) {
		if (!ticket) return [];
		const call = `${ticket.agent} ${ticket.since} ${ticket.pid}`;
		if (call !== this.#call) [this.#call, this.#seen, this.#current] = [call, new Map(), ""];
		const rule = `${ticket.reason} ${ticket.limit}`;
		const before = this.#seen.get(rule);
		this.#seen.set(rule, { ticket, at: now, times: (before?.times ?? 0) + (rule !== this.#current) });
		this.#current = rule;
		for (const [key, { at }] of this.#seen) if (now - at >= TURN) this.#seen.delete(key);
		const all = [...this.#seen.values()];
		// Alone, it alternates with nothing any more.
		if (all.length === 1) all[0].times = 1;
		return all.some(({ times }) => times > 1) ? all.map((of) => of.ticket) : [ticket];
	}
}

// Those reasons in one sentence. Of a call that is paced, the limits are listed.
function inTurn(reasons, pool, paused) {
	const [first] = reasons;
	const limits = PACED.includes(first.reason) ? reasons.filter((of) => of.reason === first.reason)
		.map((of) => nameOf(of.limit)) : [];
	const rest = limits.length > 1 ? reasons.filter((of) => of.reason !== first.reason)
		: reasons.slice(1);
	const text = whyWaiting(first, pool, paused);
	const all = limits.length > 1 ? text.replace(limits[0], listed(limits)).replace(" lasts ", " last ")
		: text;
	return [all, ...rest.map((of) => whyWaiting(of, pool, paused))].join("; in turn: ");
}

// The least time until a call may be admitted; none is known if something must happen first. That may
// be at any time, unless it is something of this call alone.
const boundOf = (of) => instantOf(of).ms ?? 0;
const BY_ITSELF = ["cap", "hold", "pause"];
const earliest = (of) => (BY_ITSELF.includes(of.reason) && !instantOf(of).at ? Infinity : boundOf(of));

// A call that gives up before the instant at which it may be admitted. `times_out` is not used: it
// is also set for calls that a pause of some minutes holds and whose timeout is much later.
export const isLate = (ticket) => boundOf(ticket) > ticket.deadline_ms;

// What makes the pool slower than its limits allow.
export const slowedBy = (pool) => remarks(pool).find(({ isSlow }) => isSlow);

// The remarks that the summary does not have already.
export function otherRemarks(pool, word) {
	const first = word === "degraded" ? slowedBy(pool).text
		: word === "full" && lossOf(pool, isSlots(fullOf(pool)))?.text;
	const blocking = pool.waiting > 0 && !pool.pause && !pool.terminal && pool.tickets[0]?.limit;
	return [...lateCalls(pool), ...remarks(pool)].filter(({ text, limit }) => text !== first
		&& !(limit && limit === blocking));
}

// The calls that give up before their turn, while another one is next.
function lateCalls({ tickets, pause, terminal, enforce }) {
	const late = tickets.filter(isLate);
	if (pause || terminal || !enforce || late.length === 0 || isLate(nextAndLast(tickets)[0])) return [];
	const [first] = late;
	return [{ level: "warn", head: `${first.agent} (place ${count(first.position)})`, text: joined(" ",
		`${givesUp(first)}.`, late.length > 1
		&& `${plural(late.length - 1, "more call gives", "more calls give")} up before, too.`,
		longerFor(first)) }];
}

// What counts as full since the store lost the ledger, and until when.
function lossOf({ limits, learning, recovering }, isOfSlots) {
	const lost = isOfSlots ? learning : recovering;
	if (!lost) return null;
	const end = `until ${time(lost.until)}${inParentheses(lost.for_ms)}`;
	return { level: "warn", isSlow: isOfSlots, head: "The store lost the ledger:", text: !isOfSlots
		? `its rates count as full and return ${end}.` : `its slots count as full ${end}${
			!recovering && limits.some((of) => !isSlots(of)) ? "; its rates returned" : ""}.` };
}

function calm(pool) {
	const most = fullest(pool);
	const use = pool.in_flight === 0 ? "No call is in flight."
		: `${plural(pool.in_flight, "call is", "calls are")} in flight; calls pass without waiting.`;
	return joined(" ", use, most?.taken > 0 && joined(": ", `Most used: ${
		limitName(most.limit.limit)}, ${isSlots(most.limit)
		? `${count(most.taken)} of ${plural(most.base, "slot")}` : share(most.taken, most.base)}`,
	userNames(pool, most.limit)).concat("."));
}

const LESS = "Send fewer or smaller calls, or give urgent agents a higher priority.";
const MORE_LEFT = "when more of the limit is free";

// What else concerns the whole pool: its level (empty for a note), whether it slows calls, a head,
// a sentence, when it ends, and what to do unless it ends by itself.
function remarks(pool) {
	const { trouble, limits } = pool;
	const { probe, coming_back: back, one_at_a_time: one, speed_per_mille: speed, retries, ramp,
		learned_concurrency: learned, cautious } = trouble;
	const slow = { level: "warn", isSlow: true };
	const isSoon = pool.breaker === "pre_emptive" && pool.waiting === 0
		&& !limits.some((of) => of.left === 0);
	return [
		...(pool.parents ?? []).map(({ pool: name, pause, terminal }) => ({ ...slow, level: "bad",
			head: `${name}:`, text: terminal ? "the provider stopped it, and every call draws on it."
				: `paused${pause.by ? ` by ${pause.by}` : ""}, and every call draws on it.`,
			ends: terminal ? "when it is resumed" : ahead(pause.until, pause.for_ms),
			advice: `Resume ${name}.` })),
		lossOf(pool, true), lossOf(pool, false),
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
		...limits.map((of) => [of, useOf(pool, of)]).filter(([, { others }]) => others > 0)
			.map(([of, use]) => ({ level: "warn", head: "Use by others:", text: `${
				amount(of.unit, use.others)} of ${amount(of.unit, quotaOf(of))} ${limitName(of.limit)
			} did not go through Standpipe. ${FIND_OTHERS}`, limit: of.limit })),
		pool.skipped > 0 && { level: "warn", head: "Not understood:", text: `${
			plural(pool.skipped, "event")} of its log; a newer version of Standpipe wrote there. `
			+ "Update Standpipe on this machine." },
	].filter((remark) => remark);
}
