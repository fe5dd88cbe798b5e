// The use of every limit over the last minutes: what the daemon recorded, then what the snapshots
// say. Nothing is added while the store is unavailable: the figures are old then.

import { largest, useOf } from "./use.js";

export const LONGEST = 600_000;
// Samples that are so far apart have nothing between them that is known.
export const GAP = 10_000;

export class History {
	pools = new Map();
	every = 2_000;

	// What is older than the daemon's own samples stays: a daemon that was started again has none.
	seed({ every_ms: every, pools }) {
		this.every = every;
		for (const { pool, limits } of pools) {
			const known = this.pools.get(pool) ?? new Map();
			for (const of of limits) {
				const samples = recorded(of);
				const before = this.of(pool, of.limit).filter(({ at }) => at < samples[0]?.at);
				known.set(of.limit, [...before, ...samples]);
			}
			this.pools.set(pool, known);
		}
	}

	add(snapshot) {
		if (snapshot.age_ms !== undefined) return;
		this.pools = new Map(snapshot.pools.map((pool) => {
			const now = Date.parse(pool.at);
			return [pool.pool, new Map(pool.limits.map((limit) => {
				const samples = this.of(pool.pool, limit.limit).filter(({ at }) => at >= now - LONGEST);
				const last = samples.at(-1);
				// A little early is on time: snapshots do not come to the millisecond.
				if (!(last?.at > now - this.every + 200)) samples.push(sample(pool, limit));
				return [limit.limit, samples];
			}))];
		}));
	}

	of(pool, limit) {
		return this.pools.get(pool)?.get(limit) ?? [];
	}

	// The samples of a limit with the figures of now. What this daemon admits on its own is no
	// sample of the pool.
	upTo(pool, limit) {
		const samples = this.of(pool.pool, limit.limit);
		return pool.cut_off ? samples : [...samples, sample(pool, limit)];
	}
}

// When, what calls of the pool used, what others used, of what, and who.
function sample(pool, limit) {
	const { own, others, base } = useOf(pool, limit);
	return { at: Date.parse(pool.at), own, others, base, by: largest(pool, limit) };
}

function recorded({ samples, agents = [] }) {
	const shares = agents.map(({ at, used }) => [at, Object.entries(used).sort(([a, n], [b, m]) =>
		m - n || (a < b ? -1 : 1))]);
	let next = 0;
	let by = null;
	return samples.map(([at, own, others, base]) => {
		while (shares[next]?.[0] <= at) by = shares[next++][1];
		return { at, own, others, base, by };
	});
}

export const takenIn = ({ own, others }) => own + others;
export const partIn = (point) => takenIn(point) / Math.max(1, point.base);

// The sample that was the last one at an instant; none where nothing is known.
export function sampleAt(points, at) {
	const found = points.findLast((of) => of.at <= at);
	return found && at - found.at <= GAP ? found : null;
}

// The samples in runs without a gap.
export function runsOf(points) {
	const runs = [];
	for (const point of points) {
		if (point.at - (runs.at(-1)?.at(-1).at ?? -Infinity) > GAP) runs.push([]);
		runs.at(-1).push(point);
	}
	return runs;
}
