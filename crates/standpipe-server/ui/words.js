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

// When the figures are from, if they are old. A length would go on in them for ever, so they have
// instants only.
let oldSince = null;
export const markOld = (at) => { oldSince = at; };
export const isOld = () => oldSince !== null;
const instant = (ms) => time(oldSince + ms);

// An instant to come: `in 53 s (05:48:05)`.
export const ahead = (text, ms) => (oldSince === null ? `in ${whole(ms)} (${time(text)})`
	: `at ${time(text)}`);
// The same without the clock, where there is little room.
export const soon = (ms) => (oldSince === null ? `in ${whole(ms)}` : `at ${instant(ms)}`);
export const ago = (ms) => (oldSince === null ? `${whole(ms)} ago` : `at ${instant(-ms)}`);
export const lasting = (ms) => (oldSince === null ? whole(ms) : `since ${instant(-ms)}`);

// Calls of a higher priority may come at any time and delay these again.
export const PACED = ["spread", "zone", "yield"];

// Until when a call waits: the instant, in how long that is, and whether it is a lower bound.
export function instantOf(ticket) {
	const { reason, until, expected: forecast, not_before: bound } = ticket;
	return { at: until ?? forecast ?? bound,
		ms: ticket.until_ms ?? ticket.expected_ms ?? ticket.not_before_ms,
		isBound: !until && (!forecast || ticket.or_later || PACED.includes(reason)) };
}

export const inParentheses = (ms) => (oldSince === null ? ` (in ${whole(ms)})` : "");

// When a waiting call may be admitted: an exact instant or a forecast, a lower bound, or what must
// happen first. A call in the queue shows how many are ahead of it.
export function expected(ticket) {
	const { reason, waiting_for: event } = ticket;
	if (reason === null) return "now";
	const calls = reason === "order" ? callsAhead(ticket) : 0;
	const queued = calls > 0 && `${plural(calls, "call")} ahead`;
	const { at, ms, isBound } = instantOf(ticket);
	const when = at && (isBound ? `not before ${time(at)}${inParentheses(ms)}` : ahead(at, ms));
	const first = event && !queued && (!at || isBound) && afterEvent(event);
	return joined("; ", joined(", ", first, when), queued) || "never";
}

// The same for a column, where `≥` stands for `not before`.
export function expectedShort(ticket) {
	const { reason, waiting_for: event } = ticket;
	const { at, ms, isBound } = instantOf(ticket);
	if (reason === null || !at) {
		return reason === null ? "now" : !event ? "never"
			: reason === "order" ? "after those ahead" : afterEvent(event);
	}
	return isBound ? `≥ ${time(at)}${inParentheses(ms)}` : ahead(at, ms);
}

// `when a call in flight ends`, from `a call in flight to end`.
export const afterEvent = (event) => `when ${event.replace(/ to be (\w+)$/, " is $1")
	.replace(/ that shows /, " shows ").replace(/ to end$/, " ends").replace(/^the calls .*/, "$& are admitted")}`;

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
	never: (of, missing, _, isCap) => `it takes ${missing && `${missing} `}more than ${
		isCap ? "the agent's own cap on " : ""}${of} ever allows`,
	pause: () => "the pool is paused",
	return_window: () => "after the pause callers return staggered by priority",
	zone: (of) => `little is left of ${of}, so calls are spaced out while higher priorities are active`,
	yield: (of) =>
		`little is left of ${of}, and background waits while higher priorities are active`,
	spread: (of) => `background is paced so that ${of} lasts while higher priorities are active`,
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

export const reasonText = (reason, limit, missing = "", isCap = false) =>
	REASONS[reason]?.(limit ? limitName(limit) : "a limit", missing, limit, isCap) ?? reason;
