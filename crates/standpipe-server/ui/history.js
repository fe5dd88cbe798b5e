// The use of every limit over the last minutes: what the daemon recorded, then what the snapshots
// say.

import { useOf, userNames } from "./use.js";

export const LONGEST = 600_000;

export class History {
	pools = new Map();
	every = 2_000;

	seed({ every_ms: every, pools }) {
		this.every = every;
		this.pools = new Map(pools.map(({ pool, limits }) => [pool,
			new Map(limits.map(({ limit, samples }) => [limit, samples]))]));
	}

	add(snapshot) {
		this.pools = new Map(snapshot.pools.map((pool) => {
			const now = Date.parse(pool.at);
			return [pool.pool, new Map(pool.limits.map((limit) => {
				const samples = this.of(pool.pool, limit.limit).filter(([then]) => then >= now - LONGEST);
				const last = samples.at(-1);
				// A little early is on time: snapshots do not come to the millisecond.
				if (!(last?.[0] > now - this.every + 200)) {
					const next = sample(pool, limit);
					// The same text is kept once.
					if (next[4] === last?.[4]) next[4] = last[4];
					samples.push(next);
				}
				return [limit.limit, samples];
			}))];
		}));
	}

	of(pool, limit) {
		return this.pools.get(pool)?.get(limit) ?? [];
	}

	// The samples of a limit with the figures of now.
	upTo(pool, limit) {
		return [...this.of(pool.pool, limit.limit), sample(pool, limit)];
	}
}

// When, what calls of the pool used, what others used, of what, and, while a page was open, who.
function sample(pool, limit) {
	const { own, others, base } = useOf(pool, limit);
	return [Date.parse(pool.at), own, others, base, userNames(pool, limit, 3)];
}

export const takenIn = ([, own, others]) => own + others;
export const partIn = (point) => takenIn(point) / Math.max(1, point[3]);

// The sample that was the last one at an instant.
export const sampleAt = (points, at) => points.findLast(([then]) => then <= at) ?? points[0];
