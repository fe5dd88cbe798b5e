// The last priority that is known of each agent: of its calls in flight and waiting as they come, and
// of what the journal has of earlier ones. Pure: no page, no network.

const MOST = 5_000;

export class Priorities {
	#known = new Map(); // by pool and agent: the priority, and since when it is known

	see({ pool, at, leases, tickets }) {
		for (const { agent, priority } of [...leases, ...tickets]) this.note(pool, agent, priority, at);
	}

	note(pool, agent, priority, at) {
		const key = `${pool} ${agent}`;
		if (!priority || this.#known.get(key)?.at > at) return;
		if (this.#known.size >= MOST && !this.#known.has(key)) this.#known.clear();
		this.#known.set(key, { priority, at });
	}

	of = (pool, agent) => this.#known.get(`${pool} ${agent}`)?.priority;
}
