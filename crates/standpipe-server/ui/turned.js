// Calls that were not admitted: refused at once, or after a wait. The journal has them by call; here
// they are one line for each agent and reason. Pure: no page, no network.

import { listed, plural, reasonText, time } from "./words.js";

// One event as a refusal, or null. All fields of the event are read here.
export function turnedAway({ kind, agent, reason, limit, at, count: calls = 1, ended,
	retry_at: again, retry_after_ms: after }) {
	const isWait = kind === "wait" && ended === "refused";
	if (kind !== "refuse" && !isWait) return null;
	const until = again ?? (after > 0 ? new Date(Date.parse(at) + after).toISOString() : null);
	return { agent: agent ?? "unknown", reason, limit: limit ?? null, at, calls, until,
		hasWaited: isWait };
}

export const whyTurned = ({ reason, limit, hasWaited }) => (hasWaited && reason !== "deadline"
	? `timed out: ${reasonText(reason, limit)}` : reasonText(reason, limit));

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

// When it is worth to ask again, and in words: at the end of a pause that still runs, or now.
export function askAgain({ reason, until }, { pause, terminal, at }) {
	if (reason === "never") return [null, "not with this cost"];
	if (terminal) return [terminal.until, terminal.until ? time(terminal.until) : "when it is resumed"];
	const end = pause ? pause.until : until;
	return end && Date.parse(end) > Date.parse(at) ? [end, time(end)] : [null, "now"];
}
