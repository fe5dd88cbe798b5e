// The texts of figures, lengths, instants and events. Pure: no page, no network.

const figures = new Intl.NumberFormat("en-US");

export const count = (n) => figures.format(n);

// An amount of a unit; money is kept in millionths of a dollar.
export const amount = (unit, n) => (unit === "usd" ? dollars(n) : count(n));
// The same where only the limit's name is known, which begins with its unit.
export const amountOf = (limit, n) => amount(limit.split(" ")[0], n);

// Two decimals; what is less than a cent is not shown as nothing.
export const dollars = (millionths) => (millionths > 0 && millionths < 5_000 ? "<$0.01"
	: `$${(millionths / 1e6).toLocaleString("en-US",
		{ minimumFractionDigits: 2, maximumFractionDigits: 2 })}`);

// What is missing: whole cents, rounded up, so that it is never shown as nothing.
export const shortage = (limit, n) => amountOf(limit, limit.startsWith("usd")
	? Math.ceil(n / 10_000) * 10_000 : n);

// A limit's name as a person says it: `requests per minute`.
const PERIODS = { "1s": "second", "1min": "minute", "1h": "hour", "1d": "day" };
export const limitName = (limit) => limit.replace(/(?: refilled)? per (\S+)/, (_, period) =>
	` per ${PERIODS[period] ?? period.replace(/(\d)([a-z])/, "$1 $2")}`);

// A share in whole percent, as `standpipe status` prints it; a little is not shown as nothing.
export function share(part, all) {
	const percent = Math.floor(100 * part / Math.max(1, all));
	return percent === 0 && part > 0 ? "<1 %" : `${percent} %`;
}

// `the last minute`, `the last 30 s`: the period of a rate.
export const lastPeriod = (limit) => `the last ${limitName(limit).split(" per ")[1]}`;

const rank = (unit) => (unit === "requests" ? 0 : unit === "usd" ? 2 : 1);

// `1 request, 1,200 input_tokens`.
export function cost(units) {
	const all = Object.entries(units).filter(([, n]) => n > 0);
	const texts = all.sort(([a], [b]) => rank(a) - rank(b)).map(([unit, n]) =>
		unit === "usd" ? dollars(n) : unit === "parallel" ? plural(n, "slot")
			: n === 1 ? `1 ${unit.replace(/s$/, "")}` : `${count(n)} ${unit}`);
	return texts.join(", ") || "nothing";
}

// `850 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`: rounded up, so never too early.
export function length(ms) {
	if (ms < 1_000) return `${ms} ms`;
	return ms < 10_000 ? `${Math.ceil(ms / 100) / 10} s` : whole(ms);
}

// The same in whole seconds, for what moves before one's eyes.
export function whole(ms) {
	const seconds = Math.ceil(ms / 1_000);
	if (seconds < 3_600) return two(seconds, 60, "min", "s");
	const minutes = Math.round(seconds / 60);
	if (minutes < 1_440) return two(minutes, 60, "h", "min");
	return two(Math.round(minutes / 60), 24, "d", "h");
}

function two(small, per, large, name) {
	const [whole, rest] = [Math.floor(small / per), small % per];
	if (whole === 0) return `${rest} ${name}`;
	return rest === 0 ? `${whole} ${large}` : `${whole} ${large} ${rest} ${name}`;
}

export const joined = (by, ...words) => words.filter((word) => word).join(by);

// `blog`, `blog and docs`, `blog, docs and news`.
export const listed = (names) => (names.length < 2 ? names.join()
	: `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);

export const percent = (perMille) => `${perMille / 10} %`;

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

const clock = new Intl.DateTimeFormat([],
	{ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });

export const dayOf = (at) => day.format(new Date(at));

// The time of day; with the day if it is another one and not near.
export function time(text) {
	const [at, now] = [new Date(text), new Date()];
	const isNear = Math.abs(at - now) < 12 * 3_600_000 || now.toDateString() === at.toDateString();
	return `${isNear ? "" : `${dayOf(at)} `}${clock.format(at)}`;
}

// An instant to come: `in 53 s (05:48:05)`.
export const ahead = (text, ms) => `in ${whole(ms)} (${time(text)})`;

// When a waiting call may be admitted: an exact instant, a forecast, a lower bound, or what must
// happen first. A call in the queue shows how many are ahead of it.
export function expected(ticket) {
	const { reason, until, expected: forecast, not_before: bound, waiting_for: event } = ticket;
	if (reason === null) return "now";
	const calls = reason === "order" ? callsAhead(ticket) : 0;
	const queued = calls > 0 && `${plural(calls, "call")} ahead`;
	const ms = ticket.until_ms ?? ticket.expected_ms ?? ticket.not_before_ms;
	const isLater = (at, word) => `${word} before ${time(at)} (in ${whole(ms)})`;
	const instant = until ? ahead(until, ms)
		: forecast && ticket.or_later ? joined(", ", event && !queued && `waiting for ${event}`,
			isLater(forecast, "not expected"))
			: forecast ? `expected ${ahead(forecast, ms)}` : bound && isLater(bound, "not");
	return joined("; ", instant, queued) || (event ? `waiting for ${event}` : "never");
}

// How many calls of the queue are in the way of a call.
export const callsAhead = ({ calls_ahead: calls, position }) => calls ?? position - 1;

// The kinds of refusals: the head of its column, and what happened to the agent.
export const KINDS = {
	quota: ["quota", "got a 429 (quota)"],
	concurrency: ["concurrency", "got a 429 (concurrency)"],
	slow_down: ["slow down", "got a 429 (slow down)"],
	overload: ["overload", "got an overload error"],
	terminal: ["stop", "got an error that stops the account"],
};

export const refusedWith = (kind) => KINDS[kind]?.[1] ?? "was refused";

// The reasons of the admission rule, about a limit: the words of `standpipe status`, see
// refusal/why.rs.
const REASONS = {
	terminal: () => "the provider stopped the pool",
	never: (of, missing) => `it takes ${missing} more than ${of} ever allows`,
	pause: () => "the pool is paused",
	return_window: () => "after the pause callers return staggered by priority",
	zone: (of) => `little is left of ${of}, so the calls of this agent are spaced out`,
	yield: (of) => `little is left of ${of}, and background yields to higher priorities`,
	spread: (of) => `background waits so that ${of} lasts while higher priorities are active`,
	hold: () => "it is delayed before a retry, or because an agent it depends on is throttled",
	probe: () => "the probe after a pause has not been answered yet",
	sequential: () => "several agents were throttled, so calls go one at a time",
	retry_budget: () => "too many of the last minute's calls were retries",
	cap: (of) => `the agent's own cap on ${of} is reached`,
	order: (of) => `behind other calls in the queue for ${of}`,
	limit: (of) => `${of} has no room`,
	floor: (of) => `the rest of ${of} is reserved for the floors of other agents`,
	ramp: (of) =>
		`a pause has just ended, and the part of ${of} that is usable at first is used`,
	pace: (of) => `too soon after the last call (${of})`,
	learning: (of, _, limit) => (limit
		? "the store lost the ledger, and calls in flight are being counted again"
		: "the provider's limits are not known yet, so few calls run at a time"),
	queue_full: () => "too many calls are queued or in flight",
	deadline: () => "its timeout has passed",
	store: () => "the store is unavailable",
};

export const reasonText = (reason, limit, missing = "some units") =>
	REASONS[reason]?.(limit ? limitName(limit) : "a limit", missing, limit) ?? reason;

const by = ({ agent, model }) => (model ? `${agent} (${model})` : agent);

// Waits in a row: how many calls of whom, and the longest.
export function waitsText(waits) {
	const calls = waits.reduce((sum, e) => sum + e.count, 0);
	const agents = [...new Set(waits.map(({ agent }) => agent))];
	const names = agents.length > 3 ? plural(agents.length, "agent") : listed(agents);
	const longest = Math.max(...waits.map((e) => e.longest_ms ?? e.waited_ms));
	return `${plural(calls, "call")} of ${names} waited until ${time(waits[0].at)}, the longest ${
		length(longest)}`;
}

// `requests per minute has no room: 60 of 60 used`
const waitedFor = ({ reason, limit, used, usable }) => joined(": ", reasonText(reason, limit),
	limit && Number.isInteger(used) && Number.isInteger(usable)
		&& `${amountOf(limit, used)} of ${amountOf(limit, usable)} used`);

// The events that are worth a line; others come with every call or every process.
const EVENTS = {
	wait: (e) => `${e.count === 1 ? `${by(e)} waited ${length(e.waited_ms)}`
		: `${count(e.count)} calls of ${by(e)} waited ${length(e.waited_ms)}, the longest ${
			length(e.longest_ms)}`} (${waitedFor(e)}), then ${e.ended}`,
	shadow: (e) => `${by(e)} would have waited: ${reasonText(e.reason, e.limit)}`,
	throttle: (e) => `${e.agent ?? "a call"} ${refusedWith(e.about)}${
		e.retry_after_ms === undefined ? "" : `, retry after ${length(e.retry_after_ms)}`}${
		e.said ? `: “${e.said}”` : ""}`,
	reclaim: (e) => `a lease of ${e.agent} was reclaimed: ${
		e.why === "expired" ? "it expired" : "its process ended"}`,
	pause: (e) => `paused${e.by ? ` by ${e.by}` : ""} for ${length(e.for_ms)}, until ${
		time(e.until)}`,
	resume: () => "admits calls again",
	stop: (e) => `stopped by the provider${e.until ? `, until ${time(e.until)}` : ""}`,
	config: (e) => (e.source === "file" ? `the configuration file was ${
		e.result === "applied" ? "applied" : "not applied: another one is in force"}`
		: e.result === "applied" ? "limits from code or --limit were applied"
			: "--limit was ignored: stricter limits are in force"),
	window_reset: (e) => `the provider's window of ${limitName(e.limit)} began anew`,
	sequential: (e) => (e.on ? "several agents were throttled: calls go one at a time"
		: "calls no longer go one at a time"),
	learn: (e) => `the provider stated a limit: ${amountOf(e.limit, e.amount)} ${
		limitName(e.limit)}`,
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
	doubt: (e) => `${joined(" ", e.about, e.value && `“${e.value}”`)} was not believed: ${e.why}`,
	store: (e) => e.what,
	lost: (e) => `${plural(e.lines, "line")} of the journal could not be written`,
};

// The choices of the filter of events: a name, and the kinds of events that it has.
export const GROUPS = [
	["refusals", ["throttle", "stop", "client_retry"]],
	["waits", ["wait", "shadow", "promote"]],
	["pauses", ["pause", "resume", "sequential", "zone", "breaker"]],
	["limits and settings", ["config", "learn", "margin", "window_reset", "outside", "doubt"]],
	["store and leases", ["store", "lost", "reclaim"]],
];

// How grave an event is: the levels of a pool.
export const gravity = ({ kind }) => (["throttle", "stop", "outside", "lost"].includes(kind) ? "bad"
	: ["pause", "sequential", "reclaim", "client_retry", "doubt"].includes(kind) ? "warn" : "");

export const isShown = (event) => Object.hasOwn(EVENTS, event.kind);
export const eventText = (event) => EVENTS[event.kind](event);
