import {
  advance,
  type NumberRange,
  type Place,
  type SequenceState,
  type Step,
} from "../../src/sdk/typescript/src/index.ts";
import { crashesIn, type Facts, type Finding, type Post, type Rule } from "./facts.ts";
import { SequenceChecker } from "./sequence-checker.ts";

/** A delivery with the sequence headers that its receiver accepted, and what the package found by it. */
interface Checked {
  readonly post: Post;
  readonly place: Place;
  readonly step: Step;
}

/** The state of a receiver whose subscription has had the headers from its creation. */
export const NOTHING: SequenceState = { settled: 0, received: [], missed: [], earlier: [] };

/** Gives the deliveries that a receiver accepted to the package for TypeScript, in the order of its answers. */
function checkedOf(posts: readonly Post[]): Checked[] {
  const accepted = posts
    .filter(({ status }) => status === 200)
    .toSorted((a, b) => (a.endedMs ?? 0) - (b.endedMs ?? 0));
  let state = NOTHING;
  return accepted.flatMap((post) => {
    const { place } = post;
    if (place === null) return [];
    const step = advance(state, place);
    // A receiver stores text.
    state = JSON.parse(JSON.stringify(step.state));
    return [{ post, place, step }];
  });
}

type Part = "subscriptions" | "logged" | "posts" | "attempts" | "settled" | "faults";

/**
 * A receiver finds exactly the events that it missed (contract 7.19). The numbers follow from the log, and what was
 * received from the event ids.
 */
export const missedAreFound: Rule<Part> = (facts) =>
  facts.subscriptions.flatMap((one) => {
    const judged = judgeReceiver(facts, one);
    const says = (what: string): Finding => ({
      rule: "missed events are found",
      what: `${one.id}: ${what}`,
      rows: [one],
    });
    return judged.wrong.map(says);
  });

/** What the receivers of numbered events found, in all. */
export interface Found {
  events: number;
  received: number;
  reported: number;
  filled: number;
  repeats: number;
  missed: number;
  /** The events that an active subscription did not receive, and that no request has told as settled yet. */
  untold: number;
}

const NONE: Found = {
  events: 0,
  received: 0,
  reported: 0,
  filled: 0,
  repeats: 0,
  missed: 0,
  untold: 0,
};

/** Counts the events with numbers, and what their receivers found. */
export function countFound(facts: Pick<Facts, Part>): Found {
  const total = { ...NONE };
  for (const one of facts.subscriptions.filter(({ sequenceHeaders }) => sequenceHeaders)) {
    const { found } = judgeReceiver(facts, one);
    for (const name of Object.keys(total) as (keyof Found)[]) total[name] += found[name];
  }
  return total;
}

type Judged = Facts["subscriptions"][number];

function judgeReceiver(facts: Pick<Facts, Part>, one: Judged) {
  const log = facts.logged.flatMap((row) => (row.subscriptionId === one.id ? [row.eventId] : []));
  const numbers = new Map(log.map((eventId, i) => [eventId, i + 1]));
  const posts = facts.posts.filter(({ host }) => host === one.host);
  const ended = endingsOf(facts, one.id);
  const givenUp = new Set(ended.flatMap((row) => (row.isDelivered ? [] : [row.eventId])));
  const wrong = wrongPlaces(posts, { one, log, ended, givenUp });
  const received = new Map<number, Post>();
  const reported = new Map<number, Post>();
  const checker = new SequenceChecker();
  const found = { ...NONE, events: log.length };
  let through = 0;
  const checked = checkedOf(posts);
  for (const { post, place, step } of checked) {
    const number = numbers.get(post.eventId) ?? 0;
    const isRepeat = received.has(number);
    const isFilled = reported.has(number) && !isRepeat;
    if (!isRepeat) received.set(number, post);
    const missed = numbersFrom(through + 1, place.settled).filter((n) => !received.has(n));
    through = Math.max(through, place.settled);
    for (const n of missed) reported.set(n, post);
    const isSame = checker.take({ number: place.sequence, settled: place.settled }) === isRepeat;
    if (!isSame || step.repeat !== isRepeat || step.filled !== isFilled)
      wrong.push(`${number} is repeat ${step.repeat} and filled ${step.filled}`);
    if (String(inFull(step.missed)) !== String(missed))
      wrong.push(`${number} shows ${inFull(step.missed).join()} missed, not ${missed.join()}`);
    found.reported += missed.length;
    found.repeats += Number(isRepeat);
    found.filled += Number(isFilled);
  }
  for (const [number, { atMs }] of reported) {
    // A crash may lose the record of a failure. Then the event is sent again as if it had not failed.
    const untilMs = received.get(number)?.atMs ?? atMs;
    const isAgain = untilMs > atMs && crashesIn(facts, { fromMs: atMs, untilMs }).length > 0;
    if (!givenUp.has(log[number - 1] ?? "") && !isAgain)
      wrong.push(`${number} was told as settled, and was neither skipped nor given up`);
  }
  const missed = numbersFrom(1, through).filter((n) => !received.has(n));
  found.received = received.size;
  found.missed = missed.length;
  const later = numbersFrom(through + 1, log.length).filter((n) => !received.has(n));
  found.untold = one.state === "active" ? later.length : 0;
  for (const told of [inFull(checked.at(-1)?.step.state.missed ?? []), checker.missed])
    if (String(told) !== String(missed)) wrong.push(`misses ${missed.join()}, not ${told.join()}`);
  return { wrong, found };
}

interface Known {
  readonly one: Judged;
  /** The events of the log in their order. */
  readonly log: readonly string[];
  readonly ended: readonly Ending[];
  readonly givenUp: ReadonlySet<string>;
}

/** Compares what requests tell as settled with the log, and with what had ended before. */
function wrongPlaces(posts: readonly Post[], { one, log, ended, givenUp }: Known): string[] {
  const seen = new Set<number>();
  return posts.flatMap((post) => {
    const { eventId, place } = post;
    if (place === null || seen.has(place.sequence)) return [];
    seen.add(place.sequence);
    // The first POST of an event that was not given up is of its first round. With lanes by review, the last event
    // comes after the end of all others.
    const isAfterAll = one.ordering === "subscription" || isLast(ended, log, post);
    const isWrong = isAfterAll && !givenUp.has(eventId) && place.settled !== place.sequence - 1;
    return isWrong ? [`${place.sequence} tells ${place.settled} settled`] : [];
  });
}

interface Ending {
  readonly eventId: string;
  readonly round: number;
  readonly isDelivered: boolean;
  readonly atMs: number;
}

/** Returns the ends of all rounds: delivered, failed or skipped. */
function endingsOf({ attempts, settled }: Pick<Facts, Part>, id: string): Ending[] {
  const own = <T extends { readonly subscriptionId: string }>(rows: readonly T[]) =>
    rows.filter(({ subscriptionId }) => subscriptionId === id);
  return [
    ...own(settled).map((row) => ({ ...row, isDelivered: false, atMs: row.settledMs })),
    ...own(attempts.filter((row) => row.ended)).map((row) => {
      return { ...row, isDelivered: row.outcome === "delivered", atMs: row.committedMs };
    }),
  ];
}

/** A load may have begun this long before the POST of an entry that it read. */
const LOADED_MS = 500;

/** Whether a request is of the last event of a log, and began after all other events had ended. */
function isLast(
  ended: readonly Ending[],
  log: readonly string[],
  { eventId, atMs }: Post,
): boolean {
  if (log.at(-1) !== eventId) return false;
  const others = ended.filter((row) => row.round === 1 && row.eventId !== eventId);
  return others.every((row) => row.atMs < atMs - LOADED_MS);
}

function numbersFrom(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
}

function inFull(ranges: readonly NumberRange[]): number[] {
  return ranges.flatMap(([first, last]) => numbersFrom(first, last));
}
