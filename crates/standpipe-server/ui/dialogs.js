// The questions before an action: settle a lease, pause or resume a pool. While one is open it
// follows the snapshots, so that it never asks about what is over.

import { h, put, show } from "./dom.js";
import { cost, plural, time, whole } from "./words.js";

const LENGTHS = [10, 30, 60, 300, 900, 3_600, 28_800, 86_400].map((seconds) => seconds * 1_000);

export class Dialogs {
	#yes = () => {};
	#follow = null;

	// `act(failed, done, method, path, body)` sends a request; `pools()` are the pools as they are.
	constructor(ui, act, pools) {
		[this.ui, this.act, this.pools] = [ui, act, pools];
		ui.ask.firstElementChild.addEventListener("submit", (event) => {
			event.preventDefault();
			ui.ask.close();
			this.#yes();
		});
		ui["ask-no"].addEventListener("click", () => ui.ask.close());
		ui.ask.addEventListener("close", () => { this.#follow = null; });
	}

	// What the buttons of a pool do.
	actions = { settle: (...of) => this.settle(...of), pause: (pool) => this.pause(pool),
		resume: (pool) => this.resume(pool) };

	#ask(title, body, label, yes, follow = null) {
		const { ui } = this;
		put(ui["ask-title"], title);
		ui["ask-body"].replaceChildren(...body);
		put(ui["ask-yes"], label);
		put(ui["ask-no"], "Cancel");
		show(ui["ask-yes"], true);
		[this.#yes, this.#follow] = [yes, follow];
		follow?.();
		ui.ask.showModal();
	}

	// With each snapshot.
	update() {
		this.#follow?.();
	}

	// What was asked about is over: nothing is left to do.
	#over(text) {
		const { ui } = this;
		ui["ask-body"].replaceChildren(h("p", { text }));
		put(ui["ask-no"], "Close");
		if (document.activeElement === ui["ask-yes"]) ui["ask-no"].focus();
		show(ui["ask-yes"], false);
		this.#follow = null;
	}

	settle(pool, lease) {
		const owner = lease.pid && !lease.daemon ? `${lease.agent}, pid ${lease.pid}` : lease.agent;
		const held = h("span");
		const find = () => this.pools().find((of) => of.pool === pool)?.leases.find(({ id }) =>
			id === lease.id);
		this.#ask(`Settle ${lease.agent}’s lease on ${pool}?`, [
			h("p", {}, h("b", { text: owner }), held),
			h("p", { text: "Settling counts all of that as used and frees its place in flight. The "
				+ "call itself is not stopped: do this when its program is stuck or gone." }),
		], "Settle it", () => this.act("The lease was not settled",
			`The lease of ${owner} is settled.`, "DELETE",
			`/v1/leases/${encodeURIComponent(lease.id)}`), () => {
			const now = find();
			if (!now) return this.#over("This lease has ended by itself.");
			return put(held, ` has held it for ${whole(now.age_ms)}: ${cost(now.cost)}.`);
		});
	}

	pause(pool) {
		const select = h("select", {}, ...LENGTHS.map((ms) => h("option", { value: ms,
			text: whole(ms) })));
		select.value = 60_000;
		const ends = h("p");
		const say = () => {
			const of = this.pools().find((one) => one.pool === pool);
			const ms = Number(select.value);
			const early = (of?.tickets ?? []).filter(({ deadline_ms: left }) => left < ms).length;
			put(ends, [`Ends at ${time(new Date(Date.now() + ms))}.`, of?.pause
				&& `The pool is paused until ${
				time(of.pause.until)} already; a shorter pause changes nothing.`, early > 0
				&& `${plural(early, "call")} in the queue ${early === 1 ? "gives" : "give"} up before.`]
				.filter((part) => part).join(" "));
		};
		select.addEventListener("change", say);
		this.#ask(`Pause ${pool}?`, [
			h("p", { text: "No call on this pool is admitted until the pause ends or a person resumes "
				+ "the pool. Calls in flight continue; calls with a shorter timeout are not admitted." }),
			h("label", {}, "For ", select), ends,
		], "Pause it", () => this.act(`${pool} was not paused`, `${pool} is paused for ${
			whole(select.value)}.`, "POST", "/v1/pause",
		{ pool, for_ms: Number(select.value) }), say);
	}

	// A pause that a person ordered ends at once; what the provider asked for is asked about.
	resume(pool) {
		const of = this.pools().find((one) => one.pool === pool);
		const send = () => this.act(`${pool} was not resumed`, `${pool} admits calls again.`, "POST",
			"/v1/resume", { pool });
		if (!of?.terminal && of?.pause?.by) return send();
		return this.#ask(`Resume ${pool}?`, [h("p", { text: of?.terminal ? "The provider stopped this "
			+ "pool. Unless the cause is fixed, the next call is refused too." : "The provider refused "
			+ "calls and this pause is its answer. If you resume before it ends, the provider may "
			+ "refuse again." })], "Resume it", send, () => {
			const now = this.pools().find((one) => one.pool === pool);
			if (now && !now.pause && !now.terminal) this.#over(`${pool} admits calls again already.`);
		});
	}
}
