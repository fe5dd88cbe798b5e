// What concerns all pools: the daemon, the store, the configuration file, agents upstream; and the
// page of a pool that does not exist.

import { h, keyed, put, show } from "./dom.js";
import { outageText } from "./state.js";
import { joined, plural, time, whole } from "./words.js";

// With each snapshot: the store, the configuration file, agents upstream.
export function banners(ui, { pools, store, backpressure, age_ms: age, store_error: error,
	config_rejected: rejected }) {
	show(ui.outage, age !== undefined);
	if (age !== undefined) {
		banner(ui.outage, "The store does not answer.", joined(" ", pools.length > 0
			&& `${outageText(pools)}.`, `The figures are ${whole(age)} old.`, error && `${error}.`),
		`Check that ${store} is reachable: standpipe doctor.`);
	}
	show(ui.rejected, rejected !== undefined);
	if (rejected) {
		banner(ui.rejected, `The configuration was rejected at ${time(rejected.at)}.`,
			joined(" ", "The daemon keeps the previous one. hold, reserve and up fail until the file "
				+ "is correct.", rejected.file
				&& !rejected.errors.some((error) => error.includes(rejected.file))
				&& `File: ${rejected.file}`),
			"Fix the file. The daemon reads it again when it changes.", rejected.errors);
	}
	show(ui.upstream.parentElement, backpressure.length > 0);
	keyed(ui.upstream, backpressure, (of) => `${of.agent} ${of.pool}`, () => h("li"), (item, of) =>
		put(item, `Workflows: ${of.agent} is throttled on ${of.pool} for another ${
			whole(of.until_ms)}.`));
}

// The banner of a daemon or a store that does not answer.
export function goneBanner(ui, error, lastAt) {
	if (error?.status === 503) {
		return banner(ui.gone, "The store is unavailable.", `Calls get 503 until it answers. ${
			error.message}.`, joined(" ", error.problem.hint && `${error.problem.hint}.`,
			"This page shows the pools as soon as the store answers."));
	}
	return banner(ui.gone, error?.problem ? `The daemon answers with an error: ${error.message}.`
		: `The daemon has not answered${lastAt && ` since ${time(lastAt)}`}.`, joined(" ",
		lastAt && "The figures below are from then.", "Programs that use the library or "
		+ "the command line continue; calls over HTTP and through the proxy fail."), joined(" ",
		error?.problem ? error.problem.hint && `${error.problem.hint}.`
			: "Start it with standpipe up.", "This page connects again by itself."));
}

// On a small screen a banner has what is wrong, where, and what to do until it is opened: the pool is
// below it.
const small = matchMedia("(max-width: 62.49rem)");

// What is wrong, what follows, the errors one by one, and what to do.
export function banner(element, title, text, advice, errors = []) {
	if (!element.firstChild) {
		element.append(h("details", small.matches ? {} : { open: "" },
			h("summary", {}, h("b")), h("p")), h("ul"),
		h("p", {}, h("b", { text: "Do: " }), h("span")));
	}
	const [{ children: [head, more] }, list, foot] = element.children;
	put(head.firstChild, title);
	put(more, text);
	keyed(list, errors, String, (error) => h("li", {}, h("code", { text: error })));
	show(list, errors.length > 0);
	put(foot.lastChild, advice);
}

// Pairs of letters that two names share, as a part of all: how alike they are.
function likeness(a, b) {
	const pairs = (name) => new Set(Array.from({ length: name.length - 1 }, (_, n) =>
		name.slice(n, n + 2).toLowerCase()));
	const [one, other] = [pairs(a), pairs(b)];
	return 2 * [...one].filter((pair) => other.has(pair)).length / Math.max(1, one.size + other.size);
}

// The page of a name that no pool has. Nothing can be done on it.
export function missingPool(name, pools) {
	const near = pools.map(({ pool }) => [likeness(name, pool), pool]).filter(([part]) => part >= 0.3)
		.sort(([a], [b]) => b - a).slice(0, 3);
	return h("section", { class: "missing" }, h("h2", { text: `No pool ${name}`, tabindex: -1 }),
		h("p", { text: `This daemon has ${plural(pools.length, "pool")}, and none with this name.` }),
		...(near.length > 0 ? [h("p", { text: "Names like it:" }), h("ul", {}, ...near.map(([, pool]) =>
			h("li", {}, h("a", { href: `#pool=${encodeURIComponent(pool)}`, text: pool }))))] : []),
		h("p", {}, h("a", { href: "#", text: "The pool that needs attention most" })));
}
