// The page as a whole: the stream of snapshots, which pool is shown, what is announced and
// what the reader does. Every figure is from the snapshot that `shown` returns.

import { fullest, outageText, stateOf, worstFirst } from "./diagnosis.js";
import { attr, h, keyed, put, show } from "./dom.js";
import { Journal, call, follow, keepToken, takeToken } from "./feed.js";
import { History } from "./plot.js";
import { PoolView } from "./pool.js";
import { cost, count, isShown, joined, limitName, plural, share, time, whole } from "./words.js";

const ROWS = 200;
const ui = {};
for (const element of document.querySelectorAll("[id]")) ui[element.id] = element;

let latest = null; // what came last
let drawn = null; // what the page shows
let lastAt = ""; // when that was
let isGone = false;
let gone = ""; // why there are no snapshots
let isFrozen = false;
let isDue = false; // a drawing is scheduled
let view = null;
const memory = {
	history: new History(),
	throttles: new Journal("since=8d&kind=throttle", () => true, 5_000),
	recent: new Journal("since=1h", isShown, 2_000),
	proxied: [],
	rows: ROWS,
};

// The snapshot whose figures the page shows.
export const shown = () => drawn;

// ---- the stream

takeToken();
let hasTried = false;
const again = follow(`/v1/pools?rows=${ROWS}`, {
	snapshot(snapshot) {
		if (isGone && latest) announce("The daemon answers again.");
		if (isGone || !latest) remember();
		[latest, lastAt, isGone] = [snapshot, new Date().toISOString(), false];
		for (const element of [ui.locked, ui.gone]) show(element, false);
		document.body.classList.remove("stale");
		gone = "";
		block();
		memory.history.add(snapshot);
		readJournals(snapshot.pools);
		draw();
	},
	gone(error) {
		if (isGone) return;
		isGone = true;
		document.body.classList.add("stale");
		const isStoreDown = error?.status === 503;
		gone = isStoreDown ? STORE_DOWN : "the daemon does not answer";
		block();
		if (isStoreDown) {
			banner(ui.gone, "The store is unavailable.", `Calls get 503 until it answers. ${
				error.message}.`, joined(" ", error.problem.hint && `${error.problem.hint}.`,
				"This page shows the pools as soon as the store answers."));
		} else {
			banner(ui.gone, error?.problem ? `The daemon answers with an error: ${error.message}.`
				: `The daemon has not answered${lastAt && ` since ${time(lastAt)}`}.`, joined(" ",
				lastAt && "The figures below are from then.", "Programs that use the library or "
				+ "the command line continue; calls over HTTP and through the proxy fail."), joined(" ",
				error?.problem ? error.problem.hint && `${error.problem.hint}.`
					: "Start it with standpipe up.", "This page connects again by itself."));
		}
		show(ui.gone, true);
		// What it says of a daemon that runs is no longer true.
		show(ui.rejected, false);
		put(ui.link, isStoreDown ? "connected, store unavailable" : "not connected");
		document.title = `(${isStoreDown ? "store unavailable" : "not connected"}) Standpipe`;
	},
	locked() {
		for (const element of [ui.page, ui.empty, ui.gone]) show(element, false);
		show(ui.locked, true);
		put(ui.link, "locked");
		put(ui.denied, hasTried ? "The daemon rejects this token." : "");
		ui.token.focus();
	},
});

ui.unlock.addEventListener("submit", (event) => {
	event.preventDefault();
	hasTried = true;
	keepToken(ui.token.value.trim());
	ui.token.value = "";
	again();
});

const STORE_DOWN = "the store is unavailable";
// Why a button would do nothing: no daemon, or no store.
const blockedBy = () => gone || (latest?.age_ms === undefined ? "" : STORE_DOWN);

function block() {
	const reason = blockedBy();
	view?.block(reason);
	ui.freeze.disabled = gone !== "";
	ui["ask-yes"].disabled = reason !== "";
	put(ui["ask-blocked"], reason && `Not possible now: ${reason}.`);
}

// What the daemon has of the last ten minutes; without it the plot begins now.
async function remember() {
	try {
		memory.history.seed(await call("GET", "/v1/history"));
		draw();
	} catch {} // The stream shows when the daemon is unavailable.
}

let isReading = false;
let [positions, changed, read] = ["", 0, 0];

// Reads the journal on when pools moved, and again until its writers have caught up.
async function readJournals(pools) {
	const now = Date.now();
	const found = pools.map(({ pool, position }) => `${pool} ${position}`).join();
	if (found !== positions) [positions, changed] = [found, now];
	const isWanted = changed > read || now - changed < 20_000;
	if (isReading || !isWanted || now - read < 3_000) return;
	[isReading, read] = [true, now];
	try {
		await memory.throttles.refresh();
		await memory.recent.refresh();
		memory.proxied = (await call("GET", "/v1/proxied")).recent;
		draw();
	} catch (error) {
		if (error.problem) wrong("The journal cannot be read", error);
	}
	isReading = false;
}

// ---- drawing

function draw() {
	if (isDue || document.hidden) return;
	isDue = true;
	requestAnimationFrame(() => {
		isDue = false;
		if (!latest || (isFrozen && drawn)) return;
		if (drawn && Date.now() > quiet) announceChanges(drawn.pools, latest.pools);
		drawn = latest;
		render(drawn);
	});
}

document.addEventListener("visibilitychange", draw);
addEventListener("hashchange", () => {
	if (!drawn || !location.hash.startsWith("#pool=")) return;
	render(drawn);
	view?.title.focus();
});

function render(snapshot) {
	const { store, unreadable = [], age_ms: age } = snapshot;
	const pools = worstFirst(snapshot.pools, age !== undefined);
	const isEmpty = pools.length + unreadable.length === 0;
	const isStoreDown = age !== undefined;
	show(ui.empty, isEmpty);
	show(ui.page, !isEmpty);
	show(ui.freeze, true);
	put(ui.store, store);
	// Old figures are not live: they have the time at which they were read.
	const read = Date.parse(lastAt) - (age ?? 0);
	if (!isGone) {
		put(ui.link, `${isFrozen ? "frozen at" : isStoreDown ? "figures of" : "live,"} ${time(read)}`);
	}
	banners(snapshot);
	const sum = (of) => count(pools.reduce((all, pool) => all + pool[of], 0));
	const waiting = `${sum("waiting")} waiting`;
	put(ui.sum, `${plural(pools.length, "pool")}, ${sum("in_flight")} in flight, ${waiting}`);
	const many = (word) => pools.filter((of) => stateOf(of)[1] === word).length;
	const held = ["stopped", "paused"].map((word) => many(word) > 0 && `${count(many(word))} ${word}`);
	const notice = isStoreDown ? "store unavailable"
		: joined(", ", ...held, !waiting.startsWith("0 ") && waiting);
	if (!isGone) document.title = `${notice && `(${notice}) `}Standpipe`;
	keyed(ui.unreadable, unreadable, (of) => of.pool, () => h("li", { class: "bad" }),
		(item, of) => put(item, `${of.pool} cannot be read: ${of.detail}`));
	// The pool that the address names, else the one that is looked at, else one in trouble.
	const named = ({ pool }) => [pool, encodeURIComponent(pool)].includes(location.hash.slice(6));
	const isIn = (...levels) => (of) => levels.includes(stateOf(of, isStoreDown)[0]);
	const chosen = pools.find(named) ?? pools.find(({ pool }) => pool === view?.name)
		?? pools.find(isIn("bad")) ?? pools.find((of) => of.waiting) ?? pools.find(isIn("warn"))
		?? pools.find(isIn("ok")) ?? pools[0];
	rail(pools, chosen, isStoreDown);
	// A pool that admits calls without the store shows what this daemon admits now.
	document.body.classList.toggle("old", isStoreDown && !chosen?.cut_off);
	if (view?.name !== chosen?.pool) {
		view = chosen ? new PoolView(chosen.pool, { settle, pause, resume }) : null;
		ui.main.replaceChildren(...(view ? [view.root] : []));
	}
	view?.update(chosen, { ...memory, isStoreDown, blocked: blockedBy() });
}

// What concerns all pools: the store, the configuration file, agents upstream.
function banners({ pools, store, backpressure, age_ms: age, store_error: error,
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
			joined(" ", "The daemon keeps the previous one. New commands fail until the file is "
				+ "correct.", rejected.file
				&& !rejected.errors.some((error) => error.includes(rejected.file))
				&& `File: ${rejected.file}`),
			"Fix the file. The daemon reads it again when it changes.", rejected.errors);
	}
	keyed(ui.upstream, backpressure, (of) => `${of.agent} ${of.pool}`, () => h("li"), (item, of) =>
		put(item, `Workflows: ${of.agent} is throttled on ${of.pool} for another ${
			whole(of.until_ms)}.`));
}

// What is wrong, what follows, the errors one by one, and what to do.
function banner(element, title, text, advice, errors = []) {
	if (!element.firstChild) {
		element.append(h("p", {}, h("b"), " ", h("span")), h("ul"), h("p", {}, h("b", { text: "Do: " }),
			h("span")));
	}
	const [head, list, foot] = element.children;
	put(head.firstChild, title);
	put(head.lastChild, text);
	keyed(list, errors, String, (error) => h("li", {}, h("code", { text: error })));
	show(list, errors.length > 0);
	put(foot.lastChild, advice);
}

// So many pools are always listed on a phone, and a few more if they need attention.
const [FEW_POOLS, MOST_POOLS] = [3, 5];

// With more pools than these a field filters them.
const MANY_POOLS = 8;

// Whether the pool, or one of its agents, has the text in its name.
function isFound({ pool, agents }, text) {
	return text === "" || [pool, ...agents.map(({ name }) => name)].some((name) =>
		name.toLowerCase().includes(text));
}

// When the pool was last used, as far as its agents show it.
function lastCall({ agents }) {
	const ago = Math.min(...agents.filter((of) => !of.never_called).map((of) => of.active_ms));
	return Number.isFinite(ago) ? `last call ${whole(ago)} ago` : "no call yet";
}

function rail(all, chosen, isStoreDown) {
	show(ui.filter, all.length > MANY_POOLS);
	const text = ui.filter.hidden ? "" : ui.filter.value.trim().toLowerCase();
	const pools = all.filter((of) => isFound(of, text));
	show(ui.nothing, pools.length === 0 && all.length > 0);
	keyed(ui.rail, pools, ({ pool }) => pool, ({ pool }) => h("li", {},
		h("a", { href: `#pool=${encodeURIComponent(pool)}` }, h("span", { class: "name", text: pool }),
			h("b", { class: "word" }), h("span", { class: "level" }, h("i")), h("small"))),
	(item, pool) => {
		const anchor = item.firstChild;
		const [, word, bar, counts] = anchor.children;
		const [level, text] = stateOf(pool, isStoreDown);
		const isCalm = ["ok", "idle"].includes(level);
		const at = pools.indexOf(pool);
		const isMore = at >= (isCalm ? FEW_POOLS : MOST_POOLS) && pool !== chosen;
		attr(item, "class", joined(" ", isCalm && "calm", isMore && "more") || null);
		attr(anchor, "class", `sign ${level}`);
		attr(anchor, "aria-current", pool === chosen ? "page" : null);
		const most = fullest(pool);
		const part = most ? (most.used + most.held) / Math.max(1, most.effective) : 0;
		bar.firstChild.style.width = `${100 * Math.min(1, part)}%`;
		// An idle pool of which nothing is used shows when it was used last instead.
		const isUnused = level === "idle" && part === 0;
		show(bar, !isUnused);
		put(word, text);
		const isSlots = most?.kind === "parallel";
		const use = isSlots ? `${count(most.held)} of ${count(most.effective)} in flight`
			: pool.in_flight > 0 && `${count(pool.in_flight)} in flight`;
		put(counts, isUnused ? lastCall(pool) : joined(" · ", use,
			pool.waiting > 0 && !text.includes("waiting") && `${count(pool.waiting)} waiting`,
			most && !isSlots && `${share(most.used + most.held, most.effective)} of ${
				limitName(most.limit)}`));
	});
	ui.rail.classList.toggle("many", all.length > MANY_POOLS);
	const hidden = [...ui.rail.querySelectorAll(".more")];
	const bad = hidden.filter((item) => !item.classList.contains("calm")).length;
	show(ui.others, hidden.length > 0);
	const isAll = ui.rail.classList.contains("all");
	put(ui.others, isAll ? "Show fewer pools" : joined(", ", `Show all ${count(pools.length)} pools`,
		bad > 0 && `${count(bad)} more ${bad === 1 ? "needs" : "need"} attention`));
	attr(ui.others, "aria-expanded", isAll);
}

ui.others.addEventListener("click", () => {
	ui.rail.classList.toggle("all");
	if (drawn) render(drawn);
});
ui.filter.addEventListener("input", () => drawn && render(drawn));

// ---- what is announced

const ANNOUNCED = 10_000;
let fading = 0;

// An announcement is news for a moment; the pool itself shows what lasts.
function announce(text) {
	put(ui.announced, `${time(new Date())} ${text}`);
	clearTimeout(fading);
	fading = setTimeout(() => put(ui.announced, ""), ANNOUNCED);
}

let quiet = 0; // no announcement until then: the reader has just seen the result of an action

// Announces pauses and stops that begin or end, not figures that move.
function announceChanges(before, now) {
	const was = new Map(before.map((pool) => [pool.pool, pool]));
	for (const { pool, pause, terminal } of now) {
		const old = was.get(pool);
		if (!old) continue;
		if (terminal && !old.terminal) announce(`${pool}: the provider stopped the pool.`);
		else if (pause && !old.pause) announce(`${pool} is paused for ${whole(pause.for_ms)}.`);
		else if (!pause && !terminal && (old.pause || old.terminal)) {
			announce(`${pool} admits calls again.`);
		}
	}
}

function wrong(what, { problem, message }) {
	const onclick = () => {
		show(ui.wrong, false);
		ui.main.focus();
	};
	ui.wrong.replaceChildren(h("p", {}, h("b", { text: `${what}: ` }),
		problem ? message : "the daemon does not answer.", h("span", { text: problem?.hint ?? "" })),
	h("button", { text: "Close", onclick }));
	show(ui.wrong, true);
}

// ---- what is done

let onYes = () => {};

// Asks in the page, and does it if the answer is yes.
function ask(title, body, label, yes) {
	put(ui["ask-title"], title);
	ui["ask-body"].replaceChildren(...body);
	put(ui["ask-yes"], label);
	onYes = yes;
	ui.ask.showModal();
}

ui.ask.firstElementChild.addEventListener("submit", (event) => {
	event.preventDefault();
	ui.ask.close();
	onYes();
});
ui["ask-no"].addEventListener("click", () => ui.ask.close());

async function act(failed, done, method, path, body) {
	show(ui.wrong, false);
	try {
		await call(method, path, body);
		quiet = Date.now() + 3_000;
		announce(done);
	} catch (error) {
		wrong(failed, error);
	}
}

function settle(lease) {
	const owner = lease.pid ? `${lease.agent}, pid ${lease.pid}` : lease.agent;
	ask("Settle this lease?", [
		h("p", {}, h("b", { text: owner }),
			` has held it for ${whole(lease.age_ms)}: ${cost(lease.cost)}.`),
		h("p", { text: "Settling counts all of that as used and frees its place in flight. The call "
			+ "itself is not stopped: do this when its program is stuck or gone." }),
	], "Settle it", () => act("The lease was not settled", `The lease of ${owner} is settled.`,
		"DELETE", `/v1/leases/${encodeURIComponent(lease.id)}`));
}

function pause(pool) {
	const lengths = [10, 30, 60, 300, 900, 3_600].map((seconds) =>
		h("option", { value: seconds * 1_000, text: whole(seconds * 1_000) }));
	const select = h("select", {}, ...lengths);
	select.value = 60_000;
	ask(`Pause ${pool}?`, [
		h("p", { text: "No call on this pool is admitted until the pause ends or a person resumes "
			+ "the pool. Calls in flight continue." }),
		h("label", {}, "For ", select),
	], "Pause it", () => act(`${pool} was not paused`,
		`${pool} is paused for ${whole(select.value)}.`,
		"POST", "/v1/pause", { pool, for_ms: Number(select.value), agent: "dashboard" }));
}

function resume({ pool, terminal, pause: running }) {
	const send = () => act(`${pool} was not resumed`, `${pool} admits calls again.`,
		"POST", "/v1/resume", { pool });
	if (!terminal && running?.by) return send();
	return ask(`Resume ${pool}?`, [h("p", { text: terminal ? "The provider stopped this pool. Unless "
		+ "the cause is fixed, the next call is refused too." : "The provider refused calls and this "
		+ "pause is its answer. If you resume before it ends, the provider may refuse again." })],
	"Resume it", send);
}

ui.freeze.addEventListener("click", () => {
	isFrozen = !isFrozen;
	put(ui.freeze, isFrozen ? "Resume view" : "Freeze");
	document.body.classList.toggle("frozen", isFrozen);
	if (isFrozen) put(ui.link, `frozen at ${time(drawn.pools[0]?.at ?? lastAt)}`);
	else draw();
});

ui.theme.value = document.documentElement.dataset.theme ?? "auto";
ui.theme.addEventListener("change", () => {
	document.documentElement.dataset.theme = ui.theme.value;
	// Without storage it is not remembered.
	try { localStorage.setItem("standpipe-theme", ui.theme.value); } catch {}
});

put(ui.curl, `curl ${location.origin}/v1/leases -H 'content-type: application/json' `
	+ "-d '{\"pool\": \"my/slots\", \"limits\": {\"parallel\": 2}}'");
