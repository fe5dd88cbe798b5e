// The page as a whole: the stream of snapshots, which pool is shown, and what the reader does. Every
// figure is from the snapshot that `shown` returns.

import { banners, goneBanner, missingPool } from "./banners.js";
import { Dialogs } from "./dialogs.js";
import { attr, h, keyed, put, show } from "./dom.js";
import { isShown } from "./events.js";
import { Journal, call, follow, keepToken, takeToken } from "./feed.js";
import { History } from "./history.js";
import { chosenAgent } from "./listing.js";
import { PoolView } from "./pool.js";
import { Priorities } from "./priorities.js";
import { Rail } from "./rail.js";
import { stateOf } from "./state.js";
import { Toast, changes } from "./toast.js";
import { count, joined, markOld, time } from "./words.js";

const ROWS = 200;
const ui = {};
for (const element of document.querySelectorAll("[id]")) ui[element.id] = element;

let latest = null; // what came last
let lastAt = ""; // when that was
let drawn = null; // what the page shows
let drawnAt = ""; // when that came
let isGone = false;
let gone = ""; // why there are no snapshots
let isFrozen = false;
let isDue = false; // a drawing is scheduled
let view = null;
let missing = null; // the name of a pool that does not exist, while its page is shown
const memory = {
	history: new History(),
	throttles: new Journal("since=8d&kind=throttle", () => true, 5_000),
	recent: new Journal("since=1h", isShown, 2_000),
	priorities: new Priorities(),
	proxied: [],
	rows: ROWS,
};
// What agents used has the priority of their calls.
const used = new Journal("since=1h&kind=usage", () => false, 300, (event) =>
	memory.priorities.note(event.pool, event.agent, event.priority, event.at));
// The pools as they were before the store went away.
const known = new Map();
const toast = new Toast(ui.notes, ui.reader);
const rail = new Rail(ui);

// The snapshot whose figures the page shows.
export const shown = () => drawn;

// ---- the stream

takeToken();
let hasTried = false;
const again = follow(`/v1/pools?rows=${ROWS}`, {
	snapshot(snapshot) {
		if (isGone && latest) toast.show("The daemon answers again.");
		if (isGone || !latest) readHistory();
		[latest, lastAt, isGone, gone] = [snapshot, new Date().toISOString(), false, ""];
		for (const element of [ui.locked, ui.gone]) show(element, false);
		document.body.classList.remove("stale");
		block();
		remember(snapshot);
		readJournals(snapshot.pools);
		dialogs.update();
		draw();
	},
	gone(error) {
		if (isGone) return;
		isGone = true;
		document.body.classList.add("stale");
		const isStoreDown = error?.status === 503;
		gone = isStoreDown ? STORE_DOWN : "the daemon does not answer";
		block();
		const since = latest?.age_ms === undefined ? latest?.lastRead : lastAt;
		goneBanner(ui, error, since ?? "");
		show(ui.gone, true);
		// What it says of a daemon that runs is no longer true.
		show(ui.rejected, false);
		link("bad", isStoreDown ? "connected, store unavailable" : "not connected");
		document.title = `(${isStoreDown ? "store unavailable" : "not connected"}) Standpipe`;
		if (drawn) render(drawn);
	},
	locked() {
		for (const element of [ui.page, ui.empty, ui.gone]) show(element, false);
		show(ui.locked, true);
		link("warn", "locked");
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

// How fresh the figures are; on a phone only the word of figures that are live.
function link(level, word, when = "") {
	attr(ui.link, "class", `sign ${level}`);
	put(ui.link.firstChild, word);
	put(ui.link.lastChild, when && ` ${when}`);
}

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

// What is shown later, when the figures are old. A snapshot has when the store was read last, by the
// store's clock, and while it is unavailable each pool has what it does meanwhile.
function remember(snapshot) {
	const { pools, age_ms: age, on_store_failure: modes = {} } = snapshot;
	for (const pool of pools) {
		if (age === undefined) known.set(pool.pool, pool);
		else pool.on_store_failure = modes[pool.pool];
		memory.priorities.see(pool);
	}
	const read = pools.filter((of) => !of.cut_off).map(({ at }) => Date.parse(at));
	snapshot.lastRead = read.length > 0 ? Math.max(...read) : Date.now() - (age ?? 0);
	memory.history.add(snapshot);
}

// What the daemon has of the last ten minutes; without it the plot begins now.
async function readHistory() {
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
	const isWanted = changed > read || now - changed < 20_000 || now - read > 15_000;
	if (isReading || !isWanted || now - read < 3_000) return;
	[isReading, read] = [true, now];
	try {
		await memory.throttles.refresh();
		await memory.recent.refresh();
		await used.refresh();
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
		if (drawn) announce(changes(drawn.pools, latest.pools));
		[drawn, drawnAt] = [latest, lastAt];
		render(drawn);
	});
}

document.addEventListener("visibilitychange", draw);
let agentBefore = chosenAgent();
addEventListener("hashchange", () => {
	if (!drawn || location.hash.startsWith("#token=")) return;
	render(drawn);
	// The choice of an agent keeps the focus in its row.
	if (chosenAgent() === agentBefore) ui.main.querySelector("h2")?.focus();
	agentBefore = chosenAgent();
});

const named = () => new URLSearchParams(location.hash.slice(1)).get("pool");

function render(snapshot) {
	const { store, store_label: label, unreadable = [], age_ms: age } = snapshot;
	const isStoreDown = age !== undefined;
	// Old figures are not live: they have the time at which they were read, and instants only.
	const isOld = isGone || isStoreDown;
	const oldSince = isOld ? snapshot.lastRead : Date.parse(drawnAt);
	markOld(isOld ? oldSince : null);
	const pools = rail.sort(snapshot.pools, isStoreDown);
	const isEmpty = pools.length + unreadable.length === 0;
	show(ui.empty, isEmpty);
	show(ui.page, !isEmpty);
	show(ui.switch, !isEmpty);
	show(ui.freeze, true);
	if (isEmpty) howToBegin(snapshot);
	put(ui.store, label ?? store);
	attr(ui.store, "title", store);
	if (!isGone) {
		const [level, word] = isFrozen ? ["warn", "frozen at"] : isStoreDown ? ["bad", "figures of"]
			: ["ok", "live"];
		link(level, word, time(oldSince));
		document.title = titleOf(snapshot, isStoreDown);
		banners(ui, snapshot);
	}
	show(ui.unreadable, unreadable.length > 0);
	keyed(ui.unreadable, unreadable, (of) => of.pool, () => h("li", { class: "bad" }),
		(item, of) => put(item, `${of.pool} cannot be read: ${of.detail}`));
	const name = named();
	// The pool that the address names, else the one that is looked at, else the first of the list.
	const chosen = name !== null ? pools.find(({ pool }) => pool === name)
		: pools.find(({ pool }) => pool === view?.name) ?? pools[0];
	rail.update(pools, chosen, isStoreDown);
	// A pool that admits calls without the store shows what this daemon admits now.
	document.body.classList.toggle("old", isStoreDown && !chosen?.cut_off);
	choose(chosen, name, pools);
	view?.update(chosen, { ...memory, isStoreDown, blocked: blockedBy(),
		known: chosen.cut_off ? known.get(chosen.pool) : undefined, lastRead: isOld ? oldSince : null,
		now: oldSince + (age ?? 0) + Date.now() - Date.parse(drawnAt) });
}

// While no snapshots come, the plots go on without data.
setInterval(() => isGone && drawn && !document.hidden && render(drawn), 2_000);

// Puts the page of the pool in its place, or the one of a pool that does not exist.
function choose(chosen, name, pools) {
	if (chosen) {
		missing = null;
		if (view?.name === chosen.pool) return;
		view = new PoolView(chosen.pool, dialogs.actions);
		ui.main.replaceChildren(view.root);
	} else if (name !== null && missing !== name) {
		[view, missing] = [null, name];
		ui.main.replaceChildren(missingPool(name, pools));
	} else if (name === null) {
		[view, missing] = [null, null];
		ui.main.replaceChildren();
	}
}

// What a person does first: with a file that admits no pool, write one.
function howToBegin({ closed_by: file }) {
	show(ui.closed, file !== undefined);
	show(ui.open, file === undefined);
	put(ui["closed-file"], file);
}

function titleOf({ pools, config_rejected: rejected }, isStoreDown) {
	const many = (word) => pools.filter((of) => stateOf(of)[1] === word).length;
	const held = ["stopped", "paused"].map((word) => many(word) > 0 && `${count(many(word))} ${word}`);
	const waiting = pools.reduce((all, { waiting: n }) => all + n, 0);
	const notice = isStoreDown ? "store unavailable" : joined(", ", rejected && "config rejected",
		...held, waiting > 0 && `${count(waiting)} waiting`);
	return `${notice && `(${notice}) `}Standpipe`;
}

// ---- what is announced

const own = new Map(); // until when the changes of a pool are the reader's own

function announce(found) {
	for (const [pool, text] of found) if (!(own.get(pool) > Date.now())) toast.show(text);
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

async function act(failed, done, method, path, body) {
	show(ui.wrong, false);
	if (body?.pool) own.set(body.pool, Date.now() + 5_000);
	try {
		await call(method, path, body);
		toast.done(done);
	} catch (error) {
		// What has ended meanwhile is no fault.
		if (error.status === 410 && method === "DELETE") toast.show("This lease has ended already.");
		else wrong(failed, error);
	}
}

const dialogs = new Dialogs(ui, act, () => latest?.pools ?? []);

ui.freeze.addEventListener("click", () => {
	isFrozen = !isFrozen;
	put(ui.freeze, isFrozen ? "Go live" : "Freeze");
	document.body.classList.toggle("frozen", isFrozen);
	if (isFrozen) link("warn", "frozen at", time(drawnAt));
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
for (const pre of document.querySelectorAll("#empty pre")) {
	const button = h("button", { class: "copy", text: "Copy", type: "button", onclick: async () => {
		await navigator.clipboard?.writeText(pre.firstElementChild.textContent);
		put(button, "Copied");
	} });
	pre.append(button);
}
