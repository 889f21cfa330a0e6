import { queryOptions } from "@tanstack/react-query";

import {
  type EventNumbers,
  MAX_NUMBERS,
  countNumbers,
  numbersInParts,
  rangesText,
  readRanges,
} from "../../../../../outbox/event-numbers.ts";
import { type DeliveryFilter, deliveryFilterOf, STATES } from "./filters.ts";
import {
  type Delivery,
  type ListedDelivery,
  readDeliveries,
  type Reader,
  RESENT,
  subscriptionKey,
} from "./reads.ts";

/** A resend of several events, as the address names it. */
export interface Resent {
  readonly at: string;
  /** Number of events that were queued again. */
  readonly count: number;
  /** Numbers of these events at the subscription; undefined if they have none, as in a batch, or are too many. */
  readonly numbers: readonly EventNumbers[] | undefined;
}

const RESENT_PATTERN = /^(\d{13})_(\d{1,6})(?:_([\d.-]+))?$/;
/** Maximum length of the numbers in an address, so that every proxy accepts it. */
const MAX_CHARS = 4_000;

/** Writes a resend for the address, as in `1764510300000_31_17-46.52`. */
export function resentText({ at, count, numbers = [] }: Resent): string {
  const text = rangesText(numbers).replaceAll(",", ".");
  const isKept = text !== "" && text.length <= MAX_CHARS;
  return [Date.parse(at), count, ...(isKept ? [text] : [])].join("_");
}

/** Reads the resend that the address names. */
export function resentIn(params: URLSearchParams): Resent | undefined {
  const [, ms, count, text] = RESENT_PATTERN.exec(params.get("resent") ?? "") ?? [];
  if (ms === undefined) return undefined;
  return {
    at: new Date(Number(ms)).toISOString(),
    count: Number(count),
    numbers: text === undefined ? undefined : readRanges(text.replaceAll(".", ",")),
  };
}

/** Returns the filter of the list: that of the address, within the resend that the address names. */
export function listedFilterOf(params: URLSearchParams): DeliveryFilter {
  const filter = deliveryFilterOf(params);
  const resent = resentIn(params);
  if (resent === undefined) return filter;
  const { numbers = [] } = resent;
  const isListed = numbers.length > 0 && countNumbers(numbers) <= MAX_NUMBERS;
  return { ...filter, ...(isListed ? { sequence: rangesText(numbers) } : sinceOf(resent)) };
}

/** Maximum difference in ms between the clock of this computer and that of the server. */
const CLOCK_MS = 60_000;

/** Returns the filter by time that finds the attempts of a resend. */
const sinceOf = ({ at }: Resent) => ({
  since: new Date(Date.parse(at) - CLOCK_MS).toISOString(),
});

export type StateCounts = Readonly<Record<Delivery["state"], number>>;

const NONE: StateCounts = { pending: 0, waiting: 0, held: 0, delivered: 0, failed: 0, skipped: 0 };

const countOf = (counts: StateCounts): number =>
  Object.values(counts).reduce((sum, one) => sum + one, 0);

/** Number of events that one request counts, which is the size of a page. */
const PER_REQUEST = 100;
/** Time after a resend in which all attempts of its events begin (contract 7.7), in ms. */
const ROUND_MS = 7_200_000;
/** Maximum number of pages that are read to count the events of a resend without numbers. */
const MAX_PAGES = 50;
const POLL_MS = 2_000;
/** Number of parts of a resend that are read in one interval, so that a long resend is read less often. */
const PARTS_PER_POLL = 5;

/**
 * Returns the queries that count the events of a resend by state. Each part of a resend is read again until all its
 * events are settled.
 */
export function resentQueries(reader: Reader, id: string, resent: Resent) {
  const { at, numbers = [], count } = resent;
  const until = new Date(Date.parse(at) + ROUND_MS).toISOString();
  const parts = numbersInParts(numbers, PER_REQUEST);
  const numbered = parts.map((sequence): Part => ({ filter: { sequence }, isOf: () => true }));
  const since = sinceOf(resent);
  const all = parts.length > 0 ? numbered : [{ filter: { ...since, until }, isOf: isLaterRound }];
  const everyMs = POLL_MS * Math.ceil(all.length / PARTS_PER_POLL);
  return all.map((part) =>
    queryOptions({
      queryKey: subscriptionKey(id, RESENT, part.filter),
      queryFn: () => countPart(reader, id, part),
      refetchInterval: ({ state: { data } }) =>
        data !== undefined && isSettled(data, parts.length > 0 ? 0 : count) ? false : everyMs,
    }),
  );
}

const isLaterRound = ({ attempts }: ListedDelivery): boolean => (attempts.at(-1)?.round ?? 1) > 1;

interface Part {
  readonly filter: DeliveryFilter;
  /** Returns whether a delivery that matches the filter belongs to the resend. */
  readonly isOf: (delivery: ListedDelivery) => boolean;
}

async function countPart(reader: Reader, id: string, { filter, isOf }: Part): Promise<StateCounts> {
  const counts: Record<Delivery["state"], number> = { ...NONE };
  let cursor: string | undefined;
  for (let read = 0; read < MAX_PAGES; read++) {
    const page = await readDeliveries(reader, id, filter, { cursor });
    for (const one of page.data)
      if (isOf(one) && one.state !== "waiting_for_batch") counts[one.state] += 1;
    cursor = page.next_cursor ?? undefined;
    if (cursor === undefined) break;
  }
  return counts;
}

function isSettled(counts: StateCounts, least: number): boolean {
  const { pending, waiting, held } = counts;
  return pending + waiting + held === 0 && countOf(counts) >= least;
}

/**
 * Adds up the parts of a resend. Events that were not found yet count as queued, because an event without a number is
 * found by its first attempt.
 */
export function sumOf(parts: readonly StateCounts[], { count }: Resent): StateCounts {
  const sum: Record<Delivery["state"], number> = { ...NONE };
  for (const part of parts) for (const state of STATES) sum[state] += part[state];
  return { ...sum, pending: sum.pending + Math.max(0, count - countOf(sum)) };
}
