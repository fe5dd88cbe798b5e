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

// A limit's name as a person says it: `requests per minute`.
const PERIODS = { "1s": "second", "1min": "minute", "1h": "hour", "1d": "day" };
export const limitName = (limit) => limit.replace(/(?: refilled)? per (\S+)/, (_, period) =>
	` per ${PERIODS[period] ?? period.replace(/(\d)([a-z])/, "$1 $2")}`);

// A share in whole percent, as `standpipe status` prints it; a little is not shown as nothing.
export function share(part, all) {
	const percent = Math.floor(100 * part / Math.max(1, all));
	return percent === 0 && part > 0 ? "<1 %" : `${percent} %`;
}

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

// When a waiting call may be admitted: an exact instant, a lower bound, or what must happen first.
export function expected({ reason, until, until_ms: ms, not_before: bound, not_before_ms: least,
	waiting_for: event }) {
	if (reason === null) return "now";
	if (until) return ahead(until, ms);
	if (bound) return `not before ${time(bound)} (in ${whole(least)})`;
	return event ? `waiting for ${event}` : "never";
}

// The kinds of refusals: the head of its column, and what happened to the agent.
export const KINDS = {
	quota: ["quota", "got a 429 (quota)"],
	concurrency: ["in flight", "got a 429 (too many calls in flight)"],
	slow_down: ["slow down", "got a 429 (slow down)"],
	overload: ["overload", "got an overload error"],
	terminal: ["stop", "got an error that stops the account"],
};

export const refusedWith = (kind) => KINDS[kind]?.[1] ?? "was refused";

// The reasons of the admission rule, about a limit.
const REASONS = {
	terminal: () => "the provider stopped the pool",
	never: (of) => `it needs more than ${of} ever allows`,
	pause: () => "the pool is paused",
	return_window: () => "after a pause calls return staggered by priority",
	zone: (of) => `little is left of ${of}, so calls of its priority are spaced out`,
	yield: (of) => `little is left of ${of}, so background waits for higher priorities`,
	spread: (of) => `background is paced so that ${of} lasts`,
	hold: () => "delayed before a retry, or because an agent before it in its workflow got a 429",
	probe: () => "the first call after a pause is not answered yet",
	sequential: () => "one call at a time, because several agents got 429s",
	retry_budget: () => "too many of the last minute’s calls were retries",
	cap: (of) => `its own cap on ${of} is reached`,
	order: (of) => `other calls are ahead for ${of}`,
	limit: (of) => `${of} has no room`,
	floor: (of) => `the rest of ${of} is kept for agents with a floor`,
	ramp: (of) => `after a pause only a part of ${of} is usable at first`,
	pace: (of) => `too soon after the last call (${of})`,
	learning: () => "the limits or the calls in flight are not known yet",
	queue_full: () => "too many calls wait or are in flight",
	deadline: () => "its timeout passed",
	store: () => "the store is unavailable",
};

export const reasonText = (reason, limit) =>
	REASONS[reason]?.(limit ? limitName(limit) : "a limit") ?? reason;

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

// The events that are worth a line; others come with every call or every process.
const EVENTS = {
	wait: (e) => `${e.count === 1 ? `${by(e)} waited ${length(e.waited_ms)}`
		: `${count(e.count)} calls of ${by(e)} waited ${length(e.waited_ms)}, the longest ${
			length(e.longest_ms)}`} (${reasonText(e.reason, e.limit)}), then ${e.ended}`,
	shadow: (e) => `${by(e)} would have waited: ${reasonText(e.reason, e.limit)}`,
	throttle: (e) => `${e.agent ?? "a call"} ${refusedWith(e.about)}${
		e.retry_after_ms === undefined ? "" : `, retry after ${length(e.retry_after_ms)}`}${
		e.said ? `: “${e.said}”` : ""}`,
	reclaim: (e) => `a lease of ${e.agent} was reclaimed: ${
		e.why === "expired" ? "it expired" : "its process ended"}`,
	pause: (e) => `paused${e.by ? ` by ${e.by}` : ""} for ${length(e.for_ms)}, until ${
		time(e.until)}`,
	resume: () => "calls are admitted again",
	stop: (e) => `the provider stopped the pool${e.until ? `, until ${time(e.until)}` : ""}`,
	config: (e) => (e.source === "file" ? `the configuration file was ${
		e.result === "applied" ? "applied" : "not applied: another one is in force"}`
		: e.result === "applied" ? "limits from code or --limit were applied"
			: "--limit was ignored: stricter limits are in force"),
	window_reset: (e) => `the provider’s window of ${limitName(e.limit)} was reset`,
	sequential: (e) => (e.on ? "several agents got 429s: calls run one at a time"
		: "calls run in parallel again"),
	learn: (e) => `learned a limit from the provider: ${amountOf(e.limit, e.amount)} ${
		limitName(e.limit)}`,
	zone: (e) => `the zone is ${e.zone}`,
	promote: (e) => `${e.agent} waited long and one of its calls is promoted to standard priority`,
	margin: (e) => `margin of ${limitName(e.limit)} is now ${percent(e.per_mille)}`,
	outside: (e) => `${amountOf(e.limit, e.units)} of ${limitName(e.limit)} were used outside Standpipe, ${
		amountOf(e.limit, e.total)} in all`,
	breaker: (e) => (e.on ? "the quota will run out at this rate: callers are advised to request less"
		: "the quota no longer runs out at this rate"),
	client_retry: (e) =>
		`${e.agent} (${e.client}) ${e.guessed ? "may retry" : "retries"} on its own, on top of the proxy`,
	doubt: (e) => `${e.about} “${e.value}” was ignored: ${e.why}`,
	store: (e) => e.what,
	lost: (e) => `${plural(e.lines, "line")} of the journal could not be written`,
};

export const isShown = (event) => Object.hasOwn(EVENTS, event.kind);
export const eventText = (event) => EVENTS[event.kind](event);
