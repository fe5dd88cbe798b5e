// Requests to the daemon: one stream of snapshots that reconnects by itself, single calls, and the
// journal. The token goes in a header, which the browser's own EventSource cannot send.

const KEY = "standpipe-token";
let token = null;

export function keepToken(given) {
	token = given;
	// Without storage it lasts as long as the page.
	try { sessionStorage.setItem(KEY, given); } catch {}
}

// Takes a token out of the address bar, or out of this tab's memory.
export function takeToken() {
	const found = /^#token=(.*)/.exec(location.hash)?.[1];
	if (found) {
		// One that was not written for an address is taken as it stands.
		try { keepToken(decodeURIComponent(found)); } catch { keepToken(found); }
		history.replaceState(null, "", location.pathname);
	}
	try { token ??= sessionStorage.getItem(KEY); } catch {}
}

// A refusal is thrown with its `status` and `problem`.
async function ask(path, options) {
	if (token) options.headers.authorization = `Bearer ${token}`;
	const answer = await fetch(path, { cache: "no-store", ...options });
	if (answer.ok) return answer;
	const problem = await answer.json().catch(() => ({}));
	const text = problem.detail ?? `it answers ${answer.status}`;
	throw Object.assign(new Error(text), { status: answer.status, problem });
}

export async function call(method, path, body) {
	const headers = { accept: "application/json" };
	// Who did it is in the journal; without a name it would be the browser's.
	if (method !== "GET") headers["x-standpipe-agent"] = "dashboard";
	if (body) headers["content-type"] = "application/json";
	return (await ask(path, { method, headers, body: body && JSON.stringify(body) })).json();
}

// Not even a comment for so long, and the stream counts as dead.
const SILENCE = 8_000;
const LONGEST_WAIT = 8_000;

/**
 * Follows the snapshots for as long as the page lives: `on.snapshot(object)`, `on.gone(error)`
 * after a failure, `on.locked()` when a token is wanted. Gives a function that tries at once.
 */
export function follow(path, on) {
	let wake = () => {};
	const pause = (ms) => new Promise((done) => {
		wake = done;
		if (ms) setTimeout(done, ms);
	});
	(async () => {
		for (let wait = 500; ; wait = Math.min(LONGEST_WAIT, wait * 2)) {
			try {
				await once(path, (snapshot) => {
					wait = 250;
					on.snapshot(snapshot);
				});
				on.gone();
			} catch (error) {
				if (error.status === 401) {
					on.locked();
					await pause();
					continue;
				}
				on.gone(error);
			}
			// Random, so that many open pages do not reconnect at the same instant.
			await pause(wait * (0.8 + 0.4 * Math.random()));
		}
	})();
	return () => wake();
}

async function once(path, deliver) {
	const quit = new AbortController();
	let watch = 0;
	const rewind = () => {
		clearTimeout(watch);
		watch = setTimeout(() => quit.abort(), SILENCE);
	};
	try {
		rewind();
		const headers = { accept: "text/event-stream" };
		const answer = await ask(path, { headers, signal: quit.signal });
		const parse = parser((event, data) => event === "pools" && deliver(JSON.parse(data)));
		const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return;
			rewind();
			parse(value);
		}
	} finally {
		clearTimeout(watch);
		quit.abort();
	}
}

// Server-sent events out of pieces of text, wherever they are cut.
export function parser(deliver) {
	let [rest, event, data] = ["", "", ""];
	return (piece) => {
		const lines = (rest + piece).split(/\r?\n/);
		rest = lines.pop();
		for (const line of lines) {
			if (line.startsWith("event:")) event = line.slice(6).trim();
			else if (line.startsWith("data:")) data += line.slice(5);
			else if (line === "") {
				if (data) deliver(event, data);
				[event, data] = ["", ""];
			}
		}
	};
}

// The last events of one query, kept up to date by requesting only what is new.
export class Journal {
	events = [];
	// Goes up when the events change; 0 is not read yet.
	version = 0;
	isCut = false;
	#after = "";
	#serial = 0;

	// `seen` gets each event once, also those that are not kept.
	constructor(question, isWanted, most, seen = () => {}) {
		Object.assign(this, { question, isWanted, most, seen });
	}

	async refresh() {
		const { question, most } = this;
		const answer = call("GET", `/v1/events?${question}&limit=${most}${this.#after}`);
		const { events, next } = await answer.catch((error) => {
			if (error.status !== 400 || !this.#after) throw error;
			// A daemon that no longer has this position is read from the beginning next time.
			this.events = [];
			return { events: [], next: "" };
		});
		this.#after = next && `&after=${encodeURIComponent(next)}`;
		this.isCut ||= this.events.length + events.length >= most;
		events.forEach(this.seen);
		const fresh = events.filter(this.isWanted);
		for (const event of fresh) event.key = this.#serial += 1;
		if (fresh.length > 0 || this.version === 0) this.version += 1;
		this.events = [...this.events, ...fresh].slice(-most);
	}
}
