// The texts of the journal's events. Pure: no page, no network.

import { isTimedOut, refusalText, turnedAway, whyTurned } from "./turned.js";
import { amountOf, count, joined, length, limitName, listed, percent, plural, reasonText, refusedWith,
	time } from "./words.js";

const by = ({ agent, model }) => (model ? `${agent} (${model})` : agent);

// Several events of one kind as one line, the latest first.
export function groupText(all) {
	const [last, first] = [all[0], all.at(-1)];
	const names = [...new Set(all.map(({ agent }) => agent))].filter((name) => name);
	const agents = names.length > 3 ? plural(names.length, "agent") : listed(names);
	const since = `since ${time(first.at)}`;
	if (last.kind === "refuse") {
		const calls = all.reduce((sum, e) => sum + e.count, 0);
		return names.length === 1 ? `${refusalText({ ...turnedAway(last), calls })}, ${since}`
			: `${plural(calls, "call")} of ${agents} were not admitted: ${
				whyTurned(turnedAway(last))}, ${since}`;
	}
	if (last.kind === "wait") return waitsText(all, agents);
	if (last.kind === "shadow") {
		return `${plural(all.length, "call")} of ${agents} would have waited, ${since}`;
	}
	if (last.kind === "margin") {
		const limits = new Set(all.map(({ limit }) => limit)).size;
		const [from, to] = [percent(first.per_mille), percent(last.per_mille)];
		return `margin ${from === to ? `is ${to}` : `went from ${from} to ${to}`}${
			limits > 1 ? ` (${count(limits)} limits)` : ""}, ${since}`;
	}
	if (last.kind === "outside") return `${eventText(last)} (${count(all.length)} reports ${since})`;
	return `${eventText(last)} (${count(all.length)} times)`;
}

// Waits in a row, which ended alike: how many calls of whom, and the longest.
function waitsText(waits, agents) {
	const calls = waits.reduce((sum, e) => sum + e.count, 0);
	const longest = length(Math.max(...waits.map((e) => e.longest_ms ?? e.waited_ms)));
	const until = `until ${time(waits[0].at)}, the longest ${longest}`;
	return isTimedOut(waits[0])
		? `${plural(calls, "call")} of ${agents} timed out in the queue ${until}`
		: `${plural(calls, "call")} of ${agents} waited ${until}`;
}

// `requests per minute has no room: 60 of 60 used`
const waitedFor = ({ reason, limit, used, usable }) => joined(": ", reasonText(reason, limit),
	limit && Number.isInteger(used) && Number.isInteger(usable)
		&& `${amountOf(limit, used)} of ${amountOf(limit, usable)} used`);

// What else a call waited for: `; 3 s of it: parallel has no room`
const alsoFor = (parts = []) => parts.map(({ reason, limit, waited_ms: ms }) =>
	`; ${length(ms)} of it: ${reasonText(reason, limit)}`).join("");

// `parallel has no room, in use by blog`
const held = (text, names) => (names?.length ? `${text}, in use by ${names.join(", ")}` : text);

// The events that are worth a line; others come with every call or every process.
const EVENTS = {
	wait: (e) => `${e.count === 1 ? `${by(e)} waited ${length(e.waited_ms)}`
		: `${count(e.count)} calls of ${by(e)} waited ${length(e.waited_ms)}, the longest ${
			length(e.longest_ms)}`} (${held(waitedFor(e), e.held_by)}${alsoFor(e.also)}), then ${e.ended}${e.next ? ` on ${e.next}` : ""}${
		e.refused_for ? `: ${reasonText(e.refused_for)}` : ""}`,
	refuse: (e) => held(refusalText(turnedAway(e)), e.held_by),
	shadow: (e) => `${by(e)} would have waited: ${reasonText(e.reason, e.limit)}`,
	throttle: (e) => `${e.agent ?? "a call"} ${refusedWith(e.about)}${
		e.retry_after_ms === undefined ? "" : `, retry after ${length(e.retry_after_ms)}`}${
		e.said ? `: “${e.said}”` : ""}`,
	settle: (e) => `a lease${e.agent ? ` of ${e.agent}` : ""} (pid ${e.pid}) was settled by ${e.by
	}; its process goes on`,
	reclaim: (e) => `a lease of ${e.agent} was reclaimed: ${
		e.why === "expired" ? "it expired" : "its process ended"}`,
	pause: (e) => `paused${e.by ? ` by ${e.by}` : ""} for ${length(e.for_ms)}, until ${
		time(e.until)}`,
	resume: (e) => (e.by ? `resumed by ${e.by}` : "the pause is over"),
	stop: (e) => `stopped by the provider${e.until ? `, until ${time(e.until)}` : ""}`,
	config: (e) => (e.source === "file" ? `the configuration file was ${
		e.result === "applied" ? "applied" : "not applied: another one is in force"}`
		: e.result === "applied" ? "limits from code or --limit were applied"
			: "--limit was ignored: stricter limits are in force"),
	window_reset: (e) => `the provider's window of ${limitName(e.limit)} began anew`,
	sequential: (e) => (e.on ? "several agents were throttled: calls go one at a time"
		: "calls no longer go one at a time"),
	learn: (e) => (e.limit === "parallel"
		? `learned: the provider accepts ${plural(e.amount, "call")} at once`
		: `the provider stated a limit: ${amountOf(e.limit, e.amount)} ${limitName(e.limit)}`),
	zone: (e) => `zone ${e.zone}`,
	promote: (e) => `${e.agent} was denied for 5 minutes; its next call is served as standard`,
	margin: (e) => `margin of ${limitName(e.limit)} is now ${percent(e.per_mille)}`,
	outside: (e) => `outside use: ${amountOf(e.limit, e.units)} of ${limitName(e.limit)
		} did not go through Standpipe, ${amountOf(e.limit, e.total)} in all`,
	breaker: (e) => (e.on ? "quota will run out at this rate: callers are advised to request less"
		: "quota no longer runs out at this rate"),
	client_retry: (e) => (e.guessed
		? `${e.agent} (${e.client}) repeated a refused call; it may retry on its own`
		: `${e.agent} (${e.client}) retries on its own; standpipe doctor has the switch`),
	anomaly: (e) => `${joined(" ", e.about, e.value && `“${e.value}”`)} was not believed: ${e.why}`,
	store: (e) => e.what,
	lost: (e) => `${plural(e.lines, "line")} of the journal could not be written`,
};

// The choices of the filter of events: a name, and the kinds of events that it has.
export const GROUPS = [
	["refusals", ["throttle", "stop", "client_retry"]],
	["not admitted", ["refuse", "wait refused"]],
	["waits", ["wait", "shadow", "promote"]],
	["pauses", ["pause", "resume", "sequential", "zone", "breaker"]],
	["limits and settings", ["config", "learn", "margin", "window_reset", "outside", "anomaly"]],
	["store and leases", ["store", "lost", "reclaim", "settle"]],
];

// A wait that timed out is of another kind than one that was admitted.
export const kindOf = (event) => (isTimedOut(event) ? "wait refused" : event.kind);

// How grave an event is: the levels of a pool.
const BAD = ["throttle", "stop", "outside", "lost", "refuse", "wait refused"];
const WARN = ["pause", "sequential", "reclaim", "client_retry", "anomaly"];
export const gravity = (event) => (BAD.includes(kindOf(event)) ? "bad"
	: WARN.includes(event.kind) ? "warn" : "");

export const isShown = (event) => Object.hasOwn(EVENTS, event.kind);
export const eventText = (event) => EVENTS[event.kind](event);
