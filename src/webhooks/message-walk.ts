import { fromMs } from "../lib/clock.ts";
import type { WalkedAttempt, WalkedEntry } from "./queries/messages.ts";

/*
 * A list of messages merges two walks, each of which goes on from where it stands: attempts from the newest on, by id,
 * and entries from the last one on, by sequence. An event is shown where the first of them finds it.
 */

/** What has been looked at: the attempts from this id on, and the entries from this sequence on. */
export interface Position {
  readonly attempt: string;
  readonly entry: number;
}

export const START: Position = {
  attempt: "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
  entry: Number.MAX_SAFE_INTEGER,
};

const POSITION = /^([0-7][0-9A-HJKMNP-TV-Z]{25})\.(\d{1,16})$/;

export function positionText({ attempt, entry }: Position): string {
  return `${attempt}.${entry}`;
}

/** Undefined for a text that is no position. */
export function readPosition(text: string): Position | undefined {
  const [, attempt = "", entry = ""] = POSITION.exec(text) ?? [];
  const position = { attempt, entry: Number(entry) };
  const isRead = attempt !== "" && Number.isSafeInteger(position.entry);
  return isRead && positionText(position) === text ? position : undefined;
}

/** Where a message may stand in the list: at an attempt, or at an entry that was not attempted. */
export type Place =
  | {
      readonly attempt: string;
      readonly eventId: string;
      readonly at: Date;
      readonly isMatch: boolean;
    }
  | {
      readonly entry: number;
      readonly eventId: string;
      readonly at: Date;
      readonly isMatch: boolean;
    };

/** The position behind a place. */
export function behind(position: Position, place: Place): Position {
  return "attempt" in place
    ? { ...position, attempt: place.attempt }
    : { ...position, entry: place.entry };
}

export interface Walk<Row> {
  readonly rows: readonly Row[];
  /** Whether there is nothing behind them. */
  readonly isEnd: boolean;
}

/**
 * Merges both walks, the newest first, up to where one of them was cut: what the other has below that comes with the next
 * look. `isEnd` says that neither has more.
 */
export function mergePlaces(
  attempts: Walk<WalkedAttempt>,
  entries: Walk<WalkedEntry & { readonly isMatch: boolean }>,
): Walk<Place> {
  const tried = descending(
    attempts.rows.map(({ id, eventId, startedAt, isMatch }): Place => ({
      attempt: id,
      eventId,
      at: startedAt,
      isMatch,
    })),
  );
  const queued = descending(
    entries.rows.map(({ sequence, eventId, recordedAt, isMatch }): Place => ({
      entry: sequence,
      eventId,
      at: recordedAt,
      isMatch,
    })),
  );
  const cut = Math.max(cutOf(tried, attempts.isEnd), cutOf(queued, entries.isEnd));
  const merged = [...tried, ...queued]
    .toSorted((a, b) => b.at.getTime() - a.at.getTime())
    .filter(({ at }) => at.getTime() >= cut);
  return { rows: merged, isEnd: cut === Number.NEGATIVE_INFINITY };
}

/** Both are walked by their keys, whose order the clocks of several processes do not always keep. */
function descending(places: readonly Place[]): Place[] {
  let last = Number.POSITIVE_INFINITY;
  return places.map((place) => {
    last = Math.min(last, place.at.getTime());
    return { ...place, at: fromMs(last) };
  });
}

function cutOf(places: readonly Place[], isEnd: boolean): number {
  return isEnd
    ? Number.NEGATIVE_INFINITY
    : (places.at(-1)?.at.getTime() ?? Number.POSITIVE_INFINITY);
}
