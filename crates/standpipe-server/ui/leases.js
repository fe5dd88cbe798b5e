// The calls in flight, and the last calls that the proxy forwarded.

import { attr, h, put, setTime, show } from "./dom.js";
import { Listing, takes, who } from "./listing.js";
import { chipOf } from "./queue.js";
import { count, dollars, joined, lasting, length, plural, soon, time } from "./words.js";

export class Leases extends Listing {
	constructor(settle) {
		super("flying", "In flight", "Calls in flight, oldest first", "",
			[["agent", "wide"], ["holds", "wide"], ["in flight for", "n"], ["expires", "late wide"],
				["settle", "act"]]);
		this.settle = settle;
	}

	update(pool, blocked) {
		const { leases, in_flight: all } = pool;
		this.rows(leases, all, (of) => of.id, (row) => {
			row.cells[2].append(h("time"));
			const onclick = () => this.settle(pool.pool, row.lease);
			row.cells[4].append(h("button", { text: "Settle…", onclick }));
		}, (of, row) => {
			row.lease = of;
			who(row.cells[0], of, pool.pool);
			setTime(row.cells[2].firstChild, of.since, lasting(of.age_ms));
			attr(row.cells[4].firstChild, "aria-label",
				`Settle… the lease of ${of.agent}${of.pid && !of.daemon ? `, pid ${of.pid}` : ""}`);
			const within = of.expires_ms === null ? "" : soon(of.expires_ms);
			const ends = of.holder === "ttl" || of.daemon ? within
				: `with its process${within && `, or ${within}`}`;
			return [null, takes(of.cost, pool), null, ends, null];
		});
		this.block(blocked);
	}

	// Why no lease can be settled; empty if they can.
	block(reason) {
		for (const button of this.table.body.querySelectorAll("button")) disable(button, reason);
		put(this.note, reason && `Settling is not possible: ${reason}.`);
		show(this.note, reason !== "" && this.table.body.rows.length > 0);
	}
}

// A button that would do nothing is disabled and has the reason.
export function disable(button, reason) {
	if (button.disabled !== (reason !== "")) button.disabled = reason !== "";
	attr(button, "title", reason ? `Not possible: ${reason}` : null);
}

// The last calls that came through the proxy, together by agent, model and answer, or each; hidden
// where none did.
export class Proxied extends Listing {
	isEach = false;

	constructor() {
		super("proxied", "Proxied calls", "The last calls through the proxy, latest first", "",
			[["agent", "wide"], ["model", "wide"], ["status", "n"], ["calls", "n"], ["input", "n"],
				["output", "n"], ["cost", "n"], ["longest wait", "n"], ["ended", "n"]]);
		this.toggle = h("button", { class: "small", "aria-pressed": "false", text: "Each call",
			onclick: () => {
				this.isEach = !this.isEach;
				attr(this.toggle, "aria-pressed", this.isEach);
				this.update(...this.last);
			} });
		this.head.append(this.toggle);
		show(this.note, true);
	}

	update(pool, proxied) {
		this.last = [pool, proxied];
		const mine = proxied.filter((of) => of.pool === pool.pool);
		const lines = this.isEach ? mine.map((of) => ({ ...of, calls: 1 })) : together(mine);
		const sum = (field) => mine.reduce((all, of) => all + of[field], 0);
		const [input, output, money] = ["input_tokens", "output_tokens", "micro_usd"].map(sum);
		const unsent = mine.filter((of) => of.not_sent).length;
		put(this.note, joined(", ", `The last ${plural(mine.length, "call")}: ${count(input)} input`,
			`${count(output)} output tokens`, money > 0 && dollars(money), unsent > 0 && `${count(unsent)} not sent`));
		this.rows(lines, lines.length, (of) => (this.isEach ? `${of.at} ${of.output_tokens} ` : "")
			+ nameOfGroup(of), (row) => row.cells[8].append(h("time")), (of, { cells }) => {
			setTime(cells[8].firstChild, of.at, time(of.at));
			attr(cells[2], "class", of.status >= 400 && !of.not_sent ? "n failed" : "n");
			who(cells[0], { agent: of.session ?? of.agent });
			// A model always counts tokens; without them the answer was not read to its end.
			const isCounted = of.input_tokens + of.output_tokens > 0;
			const isCut = !isCounted && of.model && of.status < 400;
			const status = of.not_sent ? `not sent (${chipOf({ reason: of.not_sent })})`
				: `${of.status}${isCut ? ", no usage" : ""}`;
			return [null, of.model ?? "", status, count(of.calls),
				isCounted ? count(of.input_tokens) : "", isCounted ? count(of.output_tokens) : "",
				of.micro_usd > 0 ? dollars(of.micro_usd) : "",
				of.waited_ms > 0 ? length(of.waited_ms) : "", null];
		});
		put(this.count, count(mine.length));
	}
}

// A call whose usage is not known is not of the group of those that are counted.
const nameOfGroup = (of) => `${of.session ?? of.agent} ${of.model} ${of.status} ${of.not_sent} ${
	of.input_tokens + of.output_tokens > 0}`;

// Calls of one agent to one model with the same answer are one row, with the time of the last.
function together(calls) {
	const groups = new Map();
	for (const call of calls) {
		const of = groups.get(nameOfGroup(call));
		if (!of) groups.set(nameOfGroup(call), { ...call, calls: 1 });
		else {
			of.calls += 1;
			for (const field of ["input_tokens", "output_tokens", "micro_usd"]) of[field] += call[field];
			of.waited_ms = Math.max(of.waited_ms, call.waited_ms);
		}
	}
	return [...groups.values()];
}
