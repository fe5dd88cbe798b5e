// One pool in full: how it stands in sentences, its limits as bars, its tables and drawings.

import { Table, attr, h, keyed, put, show, tell } from "./dom.js";
import { Burn, Refusals } from "./plot.js";
import { amount, cause, cost, count, dollars, eventText, expected, joined, length, percent, plural, time,
	whole, why } from "./words.js";

export class PoolView {
	constructor(name, act) {
		this.name = name;
		this.title = h("h2", { text: name, tabindex: -1 });
		this.badges = h("p", { class: "badges" });
		this.about = h("p", { class: "about" }, h("span"), h("time"));
		this.pause = h("button", { text: "Pause…", onclick: () => act.pause(name) });
		this.resume = h("button", { text: "Resume", onclick: () => act.resume(this.pool) });
		this.notices = h("ul", { class: "notices" });
		this.limits = h("ul", { class: "limits" });
		this.noLimits = h("p", { class: "none" });
		this.money = h("section", { class: "money" }, h("h3", { text: "Money, last day" }), h("p"));
		this.burn = new Burn();
		this.queue = new Queue();
		this.leases = new Leases(act.settle);
		this.agents = new Agents();
		this.proxied = new Proxied();
		this.refusals = new Refusals();
		this.recent = new Recent();
		this.root = h("article", { class: "pool" },
			h("header", { class: "poolhead" }, h("div", {}, this.title, this.badges, this.about),
				h("div", { class: "acts" }, this.pause, this.resume)),
			this.notices,
			h("div", { class: "pair" }, h("section", {}, h("h3", { text: "Limits" }), this.noLimits,
				this.limits), this.burn.root),
			this.queue.root, this.leases.root, this.agents.root, this.proxied.root,
			h("div", { class: "pair" }, this.refusals.root, h("div", {}, this.money, this.recent.root)));
	}

	update(pool, { history, throttles, recent, proxied, rows }) {
		this.pool = pool;
		this.head(pool);
		keyed(this.notices, notices(pool), ([grave, word]) => grave + word,
			([grave, word]) => h("li", { class: grave }, h("b", { text: `${word} ` }), h("span")),
			(item, [, , text]) => put(item.children[1], text));
		show(this.notices, this.notices.firstChild !== null);
		put(this.noLimits, pool.trouble.cautious === null
			? "No limits are known yet. Give it some in standpipe.toml or with --limit."
			: "Not known yet: they are learned from the provider’s answers.");
		show(this.noLimits, pool.limits.length === 0);
		keyed(this.limits, pool.limits, (of) => of.limit, gauge, measure);
		this.burn.update(pool, history);
		this.queue.update(pool);
		this.leases.update(pool);
		this.agents.update(pool, rows);
		this.proxied.update(pool, proxied);
		this.refusals.update(pool, throttles);
		this.recent.update(pool, recent);
		show(this.money, pool.money !== null);
		if (pool.money) put(this.money.lastChild, money(pool.money));
	}

	head({ provider, within, zone, breaker, margin_per_mille: margin, margin_auto: auto, enforce,
		origin, pause, terminal }) {
		const badges = [
			["", provider && `provider ${provider}`],
			["", within && `within ${within}`],
			[`sign ${zone}`, `zone ${zone}`],
			["", `breaker ${breaker.replace("_", "-")}`],
			["", `margin ${percent(margin)}${auto ? ", automatic" : ""}`],
			["loud", !enforce && "shadow mode: nobody is held back"],
		].filter(([, text]) => text);
		keyed(this.badges, badges, String, ([kind, text]) => h("span", { class: kind, text }));
		const by = { file: "a file", code: "code or flags", none: "nobody yet" }[origin.source];
		put(this.about.firstChild, `configured by ${by ?? origin.source}${
			origin.version === null ? "" : `, version ${count(origin.version)}`}${
			origin.changes > 0 ? `, ${plural(origin.changes, "change")} since` : ""}${
			origin.written ? ", written " : ""}`);
		tell(this.about.lastChild, origin.written, origin.written ? time(origin.written) : "");
		// The button that has the focus is not taken away from under it.
		const isHeld = pause !== null || terminal !== null;
		if (!isHeld && document.activeElement === this.resume) this.pause.focus();
		show(this.resume, isHeld);
	}
}

function money({ spent_micro_usd: spent, wasted_micro_usd: wasted }) {
	return `${dollars(spent)} spent, ${wasted === 0 ? "nothing" : dollars(wasted)} of it wasted on `
		+ "refused and failed calls.";
}

// What concerns the whole pool: how grave, in a word, in a sentence.
function notices(pool) {
	const { cut_off: away, terminal, pause, learning, trouble } = pool;
	const { probe, coming_back: back, one_at_a_time: one, speed_per_mille: speed, retries } = trouble;
	return [
		away && ["bad", "The store is unavailable", `for ${whole(away.for_ms)}: ${away.mode === "share"
			? `limits are shared among ${plural(away.among, "process", "processes")}`
			: "calls are admitted without limits"}.`],
		terminal && ["bad", "The provider said stop,", `${terminal.for_ms === null
			? "until `standpipe resume`"
			: `until ${time(terminal.until)}, ${whole(terminal.for_ms)} to go`}${
			terminal.look_ms === null ? "" : `; one call probes in ${whole(terminal.look_ms)}`}.`],
		pause && ["warn", "Paused", `for another ${whole(pause.for_ms)}, until ${time(pause.until)}${
			cause(trouble)}.`],
		learning && ["warn", "Learning:", "the store lost its state. Calls in flight are unknown for "
			+ `another ${whole(learning.for_ms)}; everything counts as used.`],
		pool.zone === "amber" && ["warn", "Zone amber:",
			"little is left. Background and standard calls are spaced out."],
		pool.zone === "red" && ["bad", "Zone red:", "almost nothing is left. Background waits, "
			+ "standard calls run once a second, critical calls pass."],
		pool.breaker === "pre_emptive" && ["warn", "Breaker pre-emptive:",
			"the quota will run out at this rate; request less or use a fallback pool."],
		probe ? ["warn", "After a pause:", probe === "sent"
			? "one call probes; the rest wait for its answer." : "the next call probes alone."]
			: back && ["warn", "After a pause:", `the rest return within ${
				whole(back.for_ms)}, staggered by priority.`],
		one && ["warn", "One call at a time", `for at most ${whole(one.for_ms)}, because several `
			+ "agents got 429s."],
		speed !== null && ["warn", "After a 429:", `${percent(speed)} of the shortest rate is `
			+ "usable; it doubles step by step."],
		trouble.learned_concurrency !== null && ["warn", "Learned:", `the provider accepts ${
			count(trouble.learned_concurrency)} calls at once; one more every minute without a 429.`],
		trouble.cautious !== null && ["warn", "Learning the limits:", `at most ${
			count(trouble.cautious)} calls unanswered, doubled after each answer.`],
		retries && retries.left < retries.per_minute && ["", "Retries:", `${count(retries.left)} left `
			+ `of ${count(retries.per_minute)} in a minute.`],
		...pool.limits.filter((of) => of.outside > 0).map((of) => ["bad",
			`Use outside Standpipe on ${of.limit}:`,
			`${amount(of.unit, of.outside)}.`]),
		pool.skipped > 0 && ["warn", "Not understood:", `${plural(pool.skipped, "event")} of its log; `
			+ "a newer version of Standpipe wrote there."],
	].filter((notice) => notice);
}

// A limit as a pipe: what is in it, how far it may fill, how large it is.
function gauge({ limit }) {
	return h("li", {}, h("div", { class: "limithead" }, h("b", { text: limit }), h("span")),
		h("div", { role: "meter", "aria-label": limit, "aria-valuemin": 0 }, ...["used", "outside",
			"held", "mark"].map((kind) => h("i", { class: kind }))), h("dl"));
}

function measure(item, limit) {
	const [head, bar, list] = item.children;
	const { unit, used, held, effective, left } = limit;
	const outside = Math.min(limit.outside, used);
	const all = Math.max(limit.burst ?? limit.amount, effective, used + held, 1);
	const spans = [[0, used - outside], [used - outside, outside], [used, held], [effective]];
	spans.forEach(([from, size], n) => {
		bar.children[n].style.left = `${100 * from / all}%`;
		if (size !== undefined) bar.children[n].style.width = `${100 * size / all}%`;
	});
	show(bar.lastChild, effective < all);
	const says = (n) => amount(unit, n);
	put(head.lastChild, left === 0 ? "full" : `${says(left)} left`);
	attr(bar, "class", left === 0 ? "gauge full" : "gauge");
	attr(bar, "aria-valuemax", effective);
	attr(bar, "aria-valuenow", Math.min(used + held, effective));
	attr(bar, "aria-valuetext", `${says(used)} used, ${says(held)} held, of ${says(effective)}`);
	keyed(list, facts(limit, says), ([name]) => name,
		([name]) => h("div", {}, h("dt", { text: name }), h("dd")),
		(fact, [, text]) => put(fact.lastChild, text));
}

function facts(of, says) {
	const free = of.full_again_ms;
	return [
		["used", says(of.used)],
		["held", says(of.held)],
		["of it outside", of.outside > 0 && says(of.outside)],
		["used by others", of.by_others > 0 && says(of.by_others)],
		["usable", says(of.effective)],
		["limit", says(of.amount)],
		["margin", of.margin_per_mille !== null && percent(of.margin_per_mille)],
		["holds at most", of.burst !== null && says(of.burst)],
		["provider says", of.learned !== null && says(of.learned)],
		["all free", free === null ? "when calls end" : free === 0 ? "now" : `in ${whole(free)}`],
		["pace", of.pace_ms !== null && `one per ${length(of.pace_ms)}`],
		["next", of.next_grant_ms > 0 && `in ${length(of.next_grant_ms)}`],
	].filter(([, text]) => text);
}

// A table with its heading, and a word for when it is empty or cut.
class Listing {
	constructor(title, caption, none, heads) {
		this.table = new Table(caption, heads);
		this.heading = h("h3", { text: title, tabindex: -1 });
		this.count = h("span", { class: "count" });
		this.none = h("p", { class: "none", text: none });
		this.more = h("p", { class: "more" });
		this.root = h("section", { class: "listing" }, h("header", {}, this.heading, this.count),
			this.none, this.table.root, this.more);
	}

	rows(items, all, keyOf, fit, texts) {
		this.table.rows(items, keyOf, fit, texts, this.heading);
		show(this.table.root, items.length > 0);
		show(this.none, items.length === 0);
		put(this.count, all > 0 ? count(all) : "");
		put(this.more, all > items.length ? `and ${count(all - items.length)} more` : "");
	}
}

function who(cell, { agent, part_of: named, pid, model, task }) {
	if (!cell.firstChild) cell.append(h("span", { class: "name" }), h("small"));
	put(cell.firstChild, agent);
	put(cell.lastChild, joined(" · ", named && `for ${named}`, pid && `pid ${pid}`, model, task));
}

class Queue extends Listing {
	constructor() {
		super("Waiting", "Calls that wait, in order", "Nobody waits.", [["place", "n"], ["agent"],
			["tier", "tier"], ["wants"], ["why"], ["waits for", "n"], ["admitted"], ["gives up in", "n"]]);
	}

	update({ tickets, waiting }) {
		this.rows(tickets, waiting, (of) => `${of.agent} ${of.since} ${of.pid}`, ({ cells }) => {
			cells[5].append(h("time"));
			cells[6].append(h("time"));
		}, (of, { cells }) => {
			who(cells[1], of);
			tell(cells[5].firstChild, of.since, whole(of.waits_ms));
			tell(cells[6].firstChild, of.until ?? of.not_before, expected(of));
			return [count(of.position), null, of.priority, cost(of.cost),
				why(of.reason, of.limit, of.short_by, of.behind), null, null, whole(of.deadline_ms)];
		});
	}
}

class Leases extends Listing {
	constructor(settle) {
		super("In flight", "Calls in flight, oldest first", "No call is in flight.", [["agent"],
			["tier", "tier"], ["holds"], ["for", "n"], ["ends"], ["settle", "act"]]);
		this.settle = settle;
	}

	update({ leases, in_flight: all }) {
		this.rows(leases, all, (of) => of.id, (row) => {
			row.cells[3].append(h("time"));
			const onclick = () => this.settle(row.lease);
			row.cells[5].append(h("button", { text: "Settle…", onclick }));
		}, (of, row) => {
			row.lease = of;
			who(row.cells[0], of);
			tell(row.cells[3].firstChild, of.since, whole(of.age_ms));
			attr(row.cells[5].firstChild, "aria-label",
				`Settle… the lease of ${of.agent}${of.pid ? `, pid ${of.pid}` : ""}`);
			const within = of.expires_ms === null ? "" : `in ${whole(of.expires_ms)}`;
			const ends = of.holder === "ttl" ? within : `with its process${within && `, or ${within}`}`;
			return [null, of.priority, cost(of.cost), null, ends, null];
		});
	}
}

class Agents extends Listing {
	constructor() {
		super("Agents", "Agents seen on this pool", "No agent was seen yet.", [["agent", "name"],
			["tier", "tier"], ["in flight", "n"], ["waiting", "n"], ["floor"], ["cap"],
			["last active", "n"], ["remarks"]]);
	}

	update({ agents }, most) {
		// By name, so that they stay where they are while one reads.
		const sorted = [...agents].sort((a, b) => (a.name < b.name ? -1 : 1));
		this.rows(sorted, agents.length, (of) => of.name, null, (of) => [of.name, of.priority,
			count(of.in_flight), count(of.waiting), of.floor.join(", "), of.cap.join(", "),
			of.active_ms < 1_000 ? "now" : `${whole(of.active_ms)} ago`, joined("; ",
				of.promoted && "promoted: served as standard, once",
				of.denied_ms !== null && `denied for ${whole(of.denied_ms)}`)]);
		if (agents.length >= most) put(this.more, "These were active last; there may be more.");
	}
}

// The last calls that came through the proxy; nothing where none did.
class Proxied extends Listing {
	constructor() {
		super("Proxied calls", "The last calls through the proxy, latest first", "", [["agent"],
			["model"], ["status", "n"], ["input", "n"], ["output", "n"], ["cost", "n"], ["waited", "n"],
			["ended", "n"]]);
	}

	update({ pool }, proxied) {
		const mine = proxied.filter((of) => of.pool === pool).slice(0, 20);
		show(this.root, mine.length > 0);
		this.rows(mine, mine.length, (of) => `${of.at} ${of.agent} ${of.status} ${of.output_tokens}`,
			(row) => row.cells[7].append(h("time")), (of, { cells }) => {
				tell(cells[7].firstChild, of.at, time(of.at));
				return [of.session ?? of.agent, of.model ?? "", String(of.status), count(of.input_tokens),
					count(of.output_tokens), of.micro_usd > 0 ? dollars(of.micro_usd) : "",
					length(of.waited_ms), null];
			});
	}
}

class Recent {
	list = h("ol", { class: "events", tabindex: 0, "aria-label": "Events, latest first" });
	none = h("p", { class: "none" });
	root = h("section", {}, h("h3", { text: "What happened in the last hour" }), this.none,
		this.list);

	update({ pool, at }, { events, version }) {
		const mark = `${version} ${at.slice(0, 16)}`;
		if (this.mark === mark) return;
		this.mark = mark;
		const since = Date.parse(at) - 3_600_000;
		const mine = events.filter((event) => (event.pool === pool || event.pool === "*")
			&& Date.parse(event.at) > since).slice(-40).reverse();
		put(this.none, version ? "Nothing worth telling." : "Reading the journal…");
		show(this.none, mine.length === 0);
		show(this.list, mine.length > 0);
		keyed(this.list, mine, (event) => event.key, (event) => {
			const when = h("time");
			tell(when, event.at, time(event.at));
			return h("li", {}, when, h("span", { text: eventText(event) }));
		});
	}
}
