// Calls that were not admitted: refused at once, or after a wait. The journal has them by call; here
// they are one line for each agent and reason. Pure: no page, no network.

import { modeOf } from "./state.js";
import { PACED, expectedShort, instantOf, listed, plural, reasonText, shortage, time } from "./words.js";

// Whether a wait ended because the call timed out. One that ended for another reason has a refusal
// of its own in the journal.
export const isTimedOut = ({ kind, ended, refused_for: why }) => kind === "wait"
	&& ended === "refused" && !why;

// One event as a refusal, or null. All fields of the event are read here.
export function turnedAway(event) {
	const { kind, agent, reason, limit, at, count: calls = 1 } = event;
	const hasWaited = isTimedOut(event);
	if (kind !== "refuse" && !hasWaited) return null;
	return { agent: agent ?? "unknown", reason, limit: limit ?? null, at, calls, hasWaited,
		missing: event.short_by ? shortage(limit ?? "", event.short_by) : "", isCap: event.by_cap };
}

export const whyTurned = ({ reason, limit, hasWaited, missing, isCap }) => (hasWaited
	&& reason !== "deadline" ? "timed out: " : "") + reasonText(reason, limit, missing, isCap);

// `2 calls of blog were not admitted: the pool is paused`.
export const refusalText = (of) => `${plural(of.calls, "call")} of ${of.agent} ${
	of.calls === 1 ? "was" : "were"} not admitted: ${whyTurned(of)}`;

// The refusals of a pool since an instant, by agent and reason, the last first.
export function turnedAwaySince(events, pool, since) {
	const groups = new Map();
	for (const event of events) {
		if (event.pool !== pool || Date.parse(event.at) < since) continue;
		const of = turnedAway(event);
		if (!of) continue;
		const key = `${of.agent} ${of.reason} ${of.limit} ${of.hasWaited}`;
		groups.set(key, { ...of, key, calls: of.calls + (groups.get(key)?.calls ?? 0) });
	}
	return [...groups.values()].sort((a, b) => (a.at < b.at ? 1 : -1));
}

// `2 calls of blog and docs were not admitted.`
export function turnedText(groups) {
	const calls = groups.reduce((sum, of) => sum + of.calls, 0);
	if (calls === 0) return "";
	const agents = [...new Set(groups.map(({ agent }) => agent))];
	return `${plural(calls, "call")} of ${agents.length > 3 ? plural(agents.length, "agent")
		: listed(agents)} ${calls === 1 ? "was" : "were"} not admitted.`;
}

// Reasons of which the snapshot does not show whether they still hold.
const OF_ITS_OWN = [...PACED, "cap", "floor", "hold", "retry_budget"];

// When it is worth to ask again, as an instant and in words: now, if nothing is in the way of a call
// any more, else what is known of the agent's next call; nothing if that is not known.
export function askAgain({ agent, reason }, pool, isStoreDown = false) {
	const { pause, terminal, tickets, limits, parents = [], zone, trouble } = pool;
	if (reason === "never") return [null, "not with this cost"];
	if (isStoreDown) return [null, modeOf(pool) === "closed" ? "when the store answers" : ""];
	const stop = terminal ?? parents.find((of) => of.terminal)?.terminal;
	if (stop) return [stop.until, stop.until ? time(stop.until) : "when it is resumed"];
	const hold = pause ?? parents.find((of) => of.pause)?.pause;
	if (hold) return [hold.until, time(hold.until)];
	// A new call of the agent comes behind those of it that wait.
	const last = tickets.filter((of) => of.agent === agent).at(-1);
	if (last) {
		const { at, ms } = instantOf(last);
		const bound = { ...last, until: null, expected: at, expected_ms: ms, or_later: true };
		return at ? [at, expectedShort(bound)] : [null, ""];
	}
	const isFree = pool.waiting === 0 && zone === "green" && !OF_ITS_OWN.includes(reason)
		&& !trouble.probe && !trouble.coming_back && !trouble.one_at_a_time
		&& limits.every(({ left }) => left > 0);
	return [null, isFree ? "now" : ""];
}
