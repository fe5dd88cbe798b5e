// What a person can do about a state or a waiting call, chosen by its cause. Pure: no page, no
// network.

import { fullest, isSlots, useOf, usersOf } from "./use.js";
import { amount, limitName } from "./words.js";

export const END = "Nothing to do; it ends by itself.";
export const BY_REASON = {
	terminal: "Fix the account at the provider (credit, spend limit, key), then press Resume.",
	never: "Send a smaller call, or raise the limit.",
	pause: "Wait until the pause ends, or press Resume to end it now.",
	refused: "Wait until the pause ends. Resume ends it now, but the provider may refuse again.",
	order: "Wait, or give urgent calls priority critical.",
	zone: "Use priority critical for calls that must not wait, or set a floor.",
	limit: "Wait; request less; or raise the limit in standpipe.toml if the provider allows more.",
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

export const CHECK_STORE = "Check that the store is reachable: standpipe doctor.";
export const FIND_OTHERS = "Find the other users of this key (standpipe doctor), or give them a key "
	+ "of their own.";

// An agent that uses so much of a limit is its cause.
const MOST_OF_IT = 0.6;

// What to do about a rate without room, by who uses it. It must not change with every call.
function adviceForRate(pool, limit, { agent }) {
	const { others, base } = useOf(pool, limit);
	if (others > 0) return FIND_OTHERS;
	const [first] = usersOf(pool, limit);
	if (first && first.name !== agent && first.n >= MOST_OF_IT * base) {
		return `${first.name} uses most of it: give it a cap, or wait.`;
	}
	return (limit.learned ?? limit.amount) < limit.amount
		? "Wait, or request less; the provider sets this limit." : BY_REASON.limit;
}

// What to do while limits count as full because the store lost the ledger, as in `loss_remedy`.
export const lossRemedy = ({ pool, learning, recovering, waiting, limits, enforce }) =>
	((learning || recovering) && enforce && (waiting > 0 || limits.some(({ left }) => left === 0))
		? `If no call is running: standpipe store reset ${pool} --yes; else wait.` : "");

// In shadow mode: how large the limit that is used most would have to be.
export function shadowAdvice(pool) {
	const most = fullest(pool);
	const enforce = "set enforce = true in standpipe.toml to enforce the limits.";
	if (!most || isSlots(most.limit) || most.taken <= most.most) {
		return `S${enforce.slice(1)}`;
	}
	return `Raise ${limitName(most.limit.limit)} to about ${amount(most.limit.unit, most.taken)}, or ${
		enforce}`;
}

// What to do about a waiting call; a stopped process that holds a slot comes first.
export function adviceFor(ticket, pool) {
	const { reason, limit, agent, alone, priority } = ticket;
	const { leases = [] } = pool;
	if (reason === "spread") return `Raise the priority of ${agent}, or set spread = false in the pool.`;
	if (reason === "yield") return `Raise the priority of ${agent} if it must run now.`;
	if (reason === "cap") return `Wait, or raise cap of ${agent} in standpipe.toml.`;
	if (reason === "floor") return `Wait, or give ${agent} a floor too, in standpipe.toml.`;
	if (reason === "order" && priority === "critical") {
		return "Wait; calls of the highest priority go in order.";
	}
	if (alone) return "Send a smaller call, or wait until the limit is free.";
	if (reason === "limit" && limit === "parallel") {
		const stopped = [...new Set(leases.filter((of) => of.stopped).map(({ pid }) => pid))];
		if (stopped.length > 0) {
			return `${stopped.slice(0, 3).map((pid) => `Process ${pid} holds a lease and is stopped `
				+ `(kill -CONT ${pid} resumes it, kill -9 ${pid} ends it)`).join("; ")}.`;
		}
		return "Wait for a call to end, or raise parallel if the provider allows more. If a program "
			+ "hangs, settle its lease below.";
	}
	const rate = reason === "limit" && pool.limits.find((of) => of.limit === limit);
	return rate ? adviceForRate(pool, rate, ticket) : BY_REASON[reason] ?? END;
}

