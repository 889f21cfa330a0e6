import { decodeTime } from "ulid";

import type { Db } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import type { Page } from "../../http/list.ts";
import { addMs, fromMs } from "../../lib/clock.ts";
import { deliveryState } from "../decide.ts";
import type { AttemptSummary, DeliveryState } from "../delivery-model.ts";
import {
  ATTEMPTS_OF_MESSAGE,
  type AttemptTest,
  attemptTestOf,
  type Message,
  type MessageFilter,
} from "../message-model.ts";
import {
  behind,
  mergePlaces,
  type Place,
  type Position,
  positionText,
  readPosition,
  START,
  type Walk,
} from "../message-walk.ts";
import type { Subscription } from "../model.ts";
import { eventsOfReviews, standingOf } from "../queries/events.ts";
import {
  attemptsOfEvents,
  waitingBehind,
  walkAttempts,
  walkEntries,
  type EntryKind,
  type IdRange,
} from "../queries/messages.ts";

/** A page reads so many attempts and entries at the most, and then ends, full or not. */
const LOOKED_AT = 5_000;
const WINDOW = 1_000;
/** Of so many events it is looked up where they stand. */
const TOLD = 500;
/** Of more at once a statement would take longer than others of its pool should wait. */
const TOLD_AT_ONCE = 20;
const DAY_MS = 86_400_000;
/** Entries are recorded in the order of their numbers but for what clocks differ and transactions take. */
const CLOCKS_MS = 600_000;

interface MessagePage {
  readonly rows: readonly Message[];
  /** Where the next page begins. */
  readonly next: string | undefined;
}

/** What is asked of a subscription, and what follows from it. */
interface Asked {
  readonly db: Db;
  readonly subscription: Subscription;
  readonly filter: MessageFilter;
  readonly test: AttemptTest | undefined;
  readonly range: IdRange;
  /** Whether a message stands at its attempts, at its entry, or at its entry until it was attempted. */
  readonly stands: "attempt" | "entry" | "either";
}

/** The messages of a subscription that fit, those with the newest attempt or entry first. */
export async function listMessages(
  { db }: { readonly db: Db },
  subscription: Subscription,
  filter: MessageFilter,
  page: Page,
): Promise<MessagePage> {
  const test = attemptTestOf(filter);
  const range = {
    firstId: ulidFloor(filter.since ?? fromMs(0)),
    endId: filter.until === undefined ? START.attempt : ulidFloor(filter.until),
  };
  const stands = standsAt(filter.state, test);
  const asked = { db, subscription, filter, test, range, stands };
  const position = readPosition(page.after ?? "") ?? START;
  const named = await namedEvents(asked);
  return named === undefined
    ? walkMessages(asked, position, page.limit)
    : namedMessages(asked, named, position, page.limit);
}

function standsAt(
  state: DeliveryState | undefined,
  test: AttemptTest | undefined,
): Asked["stands"] {
  if (state === "delivered" || state === "failed") return "attempt";
  if (state !== undefined) return "entry";
  return test === undefined ? "either" : "attempt";
}

/** The events that the filter names by themselves or by their reviews; undefined if it names none. */
async function namedEvents({ db, subscription, filter }: Asked): Promise<string[] | undefined> {
  const { eventId, reviewId, externalReviewId } = filter;
  if (reviewId === undefined && externalReviewId === undefined)
    return eventId === undefined ? undefined : [eventId];
  const asked = { reviewId: reviewId ?? null, externalId: externalReviewId ?? null };
  const found = await eventsOfReviews(db, subscription.partnerId, asked);
  return eventId === undefined ? found : found.filter((one) => one === eventId);
}

/** Of few events: where each stands decides where it is in the list. */
async function namedMessages(
  asked: Asked,
  eventIds: readonly string[],
  position: Position,
  limit: number,
): Promise<MessagePage> {
  const told: Told[] = [];
  for (let from = 0; from < eventIds.length; from += TOLD_AT_ONCE)
    told.push(
      ...(await tell(asked, eventIds.slice(from, from + TOLD_AT_ONCE), fromMs(0))).values(),
    );
  const placed = told
    .flatMap((one) => placeOf(asked, one).map((place) => ({ place, message: one.message })))
    .filter(({ place, message }) => isBehind(place, position) && isAsked(asked, message))
    .toSorted(
      (a, b) =>
        b.place.at.getTime() - a.place.at.getTime() ||
        (a.message.eventId < b.message.eventId ? 1 : -1),
    );
  const shown = placed.slice(0, limit);
  const end = shown.reduce((at, { place }) => behind(at, place), position);
  return {
    rows: shown.map(({ message }) => message),
    next: placed.length > limit ? positionText(end) : undefined,
  };
}

function isBehind(place: Place, position: Position): boolean {
  return "attempt" in place ? place.attempt < position.attempt : place.entry < position.entry;
}

/** None where what the filter asks for never happened to the event, or at another time. */
function placeOf({ stands, filter, test }: Asked, told: Told): Place[] {
  const { message, newestMatch, isTried } = told;
  const { eventId, sequence } = message;
  if (stands === "attempt" || (stands === "either" && isTried))
    return newestMatch === undefined
      ? []
      : [{ attempt: newestMatch.id, eventId, at: newestMatch.startedAt, isMatch: true }];
  if (test !== undefined && newestMatch === undefined) return [];
  const at = message.createdAt;
  return isWithin(at, filter) ? [{ entry: sequence, eventId, at, isMatch: true }] : [];
}

function isWithin(at: Date, { since, until }: Pick<MessageFilter, "since" | "until">): boolean {
  return (since === undefined || at >= since) && (until === undefined || at < until);
}

function isAsked({ filter }: Asked, { state, event }: Message): boolean {
  return (
    (filter.state === undefined || filter.state === state) &&
    (filter.event === undefined || filter.event === event)
  );
}

/** Of all: walks until the page is full, or enough was looked at. */
async function walkMessages(asked: Asked, start: Position, limit: number): Promise<MessagePage> {
  const rows: Message[] = [];
  let position = start;
  let told = 0;
  let size = Math.min(2 * limit, WINDOW);
  for (let looked = 0; looked < LOOKED_AT; looked += size, size = WINDOW) {
    const walk = await nextPlaces(asked, position, size);
    for (let from = 0; from < walk.rows.length; from += TOLD_AT_ONCE) {
      const places = walk.rows.slice(from, from + TOLD_AT_ONCE);
      const found = await tellPlaces(asked, places);
      told += found.size;
      for (const [i, place] of places.entries()) {
        position = behind(position, place);
        const message = messageAt(asked, place, found.get(place.eventId));
        if (message === undefined) continue;
        rows.push(message);
        const isLast = walk.isEnd && from + i === walk.rows.length - 1;
        if (rows.length === limit)
          return { rows, next: isLast ? undefined : positionText(position) };
      }
      const isLast = walk.isEnd && from + TOLD_AT_ONCE >= walk.rows.length;
      if (told >= TOLD && !isLast) return { rows, next: positionText(position) };
    }
    if (walk.isEnd) return { rows, next: undefined };
  }
  return { rows, next: positionText(position) };
}

/** The message that stands at this place; undefined if it stands at another one, or does not fit. */
function messageAt(asked: Asked, place: Place, told: Told | undefined): Message | undefined {
  if (!place.isMatch || told === undefined || !isAsked(asked, told.message)) return undefined;
  const { message, newestMatch, isTried } = told;
  if ("attempt" in place) return newestMatch?.id === place.attempt ? message : undefined;
  if (place.entry !== message.sequence) return undefined;
  if (asked.stands === "either") return isTried ? undefined : message;
  return asked.test === undefined || newestMatch !== undefined ? message : undefined;
}

/** The next places of both walks, of which some are not to be walked for this filter. */
async function nextPlaces(asked: Asked, position: Position, limit: number): Promise<Walk<Place>> {
  const { db, subscription, filter, test, range, stands } = asked;
  const kind = entryKind(asked);
  const end = position.attempt < range.endId ? position.attempt : range.endId;
  const attempts =
    stands === "entry"
      ? []
      : await walkAttempts(db, subscription.id, {
          firstId: range.firstId,
          endId: end,
          event: filter.event,
          test: test ?? testOfState(filter.state),
          limit,
        });
  const entries =
    kind === undefined
      ? []
      : await walkEntries(db, subscription.id, { kind, below: position.entry, limit });
  const isMatch = (one: { event: string; recordedAt: Date }) =>
    (filter.event === undefined || filter.event === one.event) && isWithin(one.recordedAt, filter);
  return mergePlaces(
    { rows: attempts, isEnd: attempts.length < limit },
    {
      rows: entries.map((one) => ({ ...one, isMatch: isMatch(one) })),
      isEnd: entries.length < limit || isPast(entries.at(-1)?.recordedAt, filter.since),
    },
  );
}

function isPast(at: Date | undefined, since: Date | undefined): boolean {
  return at !== undefined && since !== undefined && at < addMs(since, -CLOCKS_MS);
}

/** Which entries to walk; undefined for none, where a state cannot be: what is queued is held while disabled. */
function entryKind({ stands, filter: { state }, subscription }: Asked): EntryKind | undefined {
  if (stands === "attempt") return undefined;
  if (state === undefined) return "any";
  if (state === "skipped") return "skipped";
  if ((state === "held") !== (subscription.state === "disabled")) return undefined;
  return state === "waiting" ? "waiting" : "queued";
}

/** The last attempt of a message that failed did, too. */
function testOfState(state: DeliveryState | undefined): AttemptTest | undefined {
  if (state !== "failed" && state !== "delivered") return undefined;
  return attemptTestOf({ outcome: state });
}

interface Told {
  readonly message: Message;
  readonly isTried: boolean;
  readonly newestMatch: Pick<AttemptSummary, "id" | "startedAt"> | undefined;
}

/** Nothing of these is older than they are, but for what clocks differ. */
function tellPlaces(asked: Asked, places: readonly Place[]): Promise<ReadonlyMap<string, Told>> {
  const fitting = places.filter(({ isMatch }) => isMatch);
  const [first = START.attempt] = fitting
    .flatMap(({ at, eventId }) => [ulidFloor(at), eventId])
    .toSorted();
  const since = fromMs(Math.max(0, decodeTime(first) - DAY_MS));
  const eventIds = [...new Set(fitting.map(({ eventId }) => eventId))];
  return tell(asked, eventIds, since);
}

/** Where these events stand, by their ids. */
async function tell(
  asked: Asked,
  eventIds: readonly string[],
  since: Date,
): Promise<ReadonlyMap<string, Told>> {
  if (eventIds.length === 0) return new Map();
  const { db, subscription, range, filter } = asked;
  const test = asked.test ?? testOfState(filter.state);
  const standing = await standingOf(db, subscription.id, eventIds, since);
  const heads = standing.flatMap(({ state, sequence }) => (state === "waiting" ? [sequence] : []));
  const behindHeads = await waitingBehind(db, subscription, heads);
  const wanted = { ...range, since, test };
  const attempts = await attemptsOfEvents(db, subscription.id, eventIds, wanted);
  const byEvent = Map.groupBy(attempts, ({ eventId }) => eventId);
  return new Map(
    standing.map((row) => {
      const own = byEvent.get(row.eventId) ?? [];
      const message = {
        ...row,
        state: deliveryState(row.state, subscription),
        waitingBehind: behindHeads.get(row.eventId) ?? null,
        attempts: own.slice(0, ATTEMPTS_OF_MESSAGE).toReversed(),
      };
      const newestMatch = own.find(({ isMatch }) => isMatch);
      return [row.eventId, { message, isTried: own.length > 0, newestMatch }];
    }),
  );
}
