/** An arrival of an event at its receiver. */
export interface Arrival {
  /** Arrivals of one lane follow each other in the order of their places. */
  readonly lane: string;
  readonly place: number;
}

export interface Judged<T extends Arrival> {
  /** The first arrival of each place, in the order of the arrivals. */
  readonly first: readonly T[];
  /** First arrivals after the one of a later place of their lane. */
  readonly overtaken: readonly { readonly late: T; readonly by: T }[];
  /** Arrivals of a place that had arrived before. */
  readonly repeated: number;
}

/**
 * Judges arrivals in the order in which receivers saw them. First arrivals follow the places of their lane; later ones
 * may repeat, and do not count for the order (contract 6.7).
 */
export function judgeArrivals<T extends Arrival>(arrivals: Iterable<T>): Judged<T> {
  const first: T[] = [];
  const overtaken: { late: T; by: T }[] = [];
  let repeated = 0;
  const lanes = new Map<string, { readonly seen: Set<number>; latest: T }>();
  for (const one of arrivals) {
    const lane = lanes.get(one.lane);
    if (lane?.seen.has(one.place)) {
      repeated += 1;
      continue;
    }
    first.push(one);
    if (lane === undefined) {
      lanes.set(one.lane, { seen: new Set([one.place]), latest: one });
      continue;
    }
    lane.seen.add(one.place);
    if (one.place < lane.latest.place) overtaken.push({ late: one, by: lane.latest });
    else lane.latest = one;
  }
  return { first, overtaken, repeated };
}
