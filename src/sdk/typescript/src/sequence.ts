import { type HeaderSource, headerOf } from "./verify.ts";

/** The first and the last of consecutive numbers. */
export type NumberRange = readonly [first: number, last: number];

/** The place of an event among those of its subscription. */
export interface Place {
  /** The number of the event (`X-SVC-Sequence`). */
  readonly sequence: number;
  /** The number up to which every event was delivered or given up (`X-SVC-Settled`). */
  readonly settled: number;
}

/** The numbers that a receiver has got from a subscription, as JSON. Lists are in order, without adjacent ranges. */
export interface SequenceState {
  /** The highest settled number so far. Every number up to it was received, is missed, or is in `earlier`. */
  readonly settled: number;
  /** The received numbers above `settled`. */
  readonly received: readonly NumberRange[];
  /** The numbers up to `settled` that were not received. */
  readonly missed: readonly NumberRange[];
  /** The numbers from before the first request that have not come since. */
  readonly earlier: readonly NumberRange[];
}

export interface Step {
  /** The state to store. */
  readonly state: SequenceState;
  /** The numbers that this request shows to be missed. Each number is reported once. */
  readonly missed: readonly NumberRange[];
  /** Whether the number was received before. */
  readonly repeat: boolean;
  /** Whether the number had been reported as missed. */
  readonly filled: boolean;
}

/**
 * Reads the place of an event from the headers of a verified request. Returns null without valid headers, as in
 * tests and batches, because an event must not be refused for them.
 */
export function placeOf(headers: HeaderSource): Place | null {
  const sequence = numberOf(headerOf(headers, "x-svc-sequence"));
  const settled = numberOf(headerOf(headers, "x-svc-settled"));
  const isValid = sequence !== null && sequence !== 0 && settled !== null;
  return isValid ? { sequence, settled } : null;
}

/**
 * Adds a request to the state of its subscription, and tells what the receiver has missed. Read the state, call this
 * function and store the new state in one transaction that locks the state, because requests may come at the same time.
 * With null, the numbers up to the settled one count as events from before the headers were switched on. Begin with
 * `settled` 0 and empty lists instead if the subscription has had the headers from its creation.
 */
export function advance(state: SequenceState | null, { sequence, settled }: Place): Step {
  const before = state ?? { settled, received: [], missed: [], earlier: ranged(1, settled) };
  const filled = has(before.missed, sequence);
  const isLate = filled || has(before.earlier, sequence);
  const repeat = !isLate && (sequence <= before.settled || has(before.received, sequence));
  const one = ranged(sequence, sequence);
  const received = union(before.received, one);
  const upTo = Math.max(before.settled, settled);
  const missed = minus(ranged(before.settled + 1, upTo), received);
  return {
    state: {
      settled: upTo,
      received: minus(received, ranged(1, upTo)),
      missed: union(minus(before.missed, one), missed),
      earlier: minus(before.earlier, one),
    },
    missed,
    repeat,
    filled,
  };
}

function numberOf(value: string): number | null {
  const number = /^(?:0|[1-9]\d{0,15})$/.test(value) ? Number(value) : Number.NaN;
  return Number.isSafeInteger(number) ? number : null;
}

const ranged = (first: number, last: number): NumberRange[] =>
  first > last ? [] : [[first, last]];

const has = (ranges: readonly NumberRange[], number: number) =>
  ranges.some(([first, last]) => first <= number && number <= last);

/** Merges two lists of ranges into one in order, without overlapping or adjacent ranges. */
function union(some: readonly NumberRange[], others: readonly NumberRange[]): NumberRange[] {
  const merged: NumberRange[] = [];
  for (const [first, last] of [...some, ...others].toSorted(([a], [b]) => a - b)) {
    const end = merged.at(-1);
    if (end === undefined || end[1] + 1 < first) merged.push([first, last]);
    else merged.splice(-1, 1, [end[0], Math.max(end[1], last)]);
  }
  return merged;
}

/** Removes the numbers in `cuts` from `ranges`. Both lists are in order. */
function minus(ranges: readonly NumberRange[], cuts: readonly NumberRange[]): NumberRange[] {
  const left: NumberRange[] = [];
  for (const [start, last] of ranges) {
    let first = start;
    for (const [from, to] of cuts) {
      if (from > last || to < start) continue;
      left.push(...ranged(first, from - 1));
      first = to + 1;
    }
    left.push(...ranged(first, last));
  }
  return left;
}
