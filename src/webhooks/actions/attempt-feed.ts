import { decodeTime, ulid } from "ulid";

import { ulidFloor } from "../../../db/partitions.ts";
import { bookmarkOf, messageOf, type EventSink } from "../../http/event-stream.ts";
import { addMs, fromMs, type Clock } from "../../lib/clock.ts";
import { shownAs } from "../../http/shown.ts";
import { AttemptObject, AttemptSummaryObject } from "../delivery-model.ts";
import { attemptIdsFrom, attemptsById, firstById } from "../queries/attempts.ts";
import type { WebhookDeps } from "./deps.ts";

/**
 * The period in milliseconds that streams read again with each poll. The id of an attempt is made at its start, and the
 * attempt is committed after its end. So a committed attempt may have a smaller id than attempts that a stream has
 * already sent. A stream misses an attempt that is committed more than this period after its start.
 */
export const LOOK_BACK_MS = 30_000;
/** Maximum number of attempt ids in one read: those of `LOOK_BACK_MS` at 650 attempts a second. */
const IDS_AT_ONCE = 20_000;
/** Maximum number of attempts that are sent together to a stream. All of them are in memory at the same time. */
const ATTEMPTS_PER_SEND = 100;

export interface FeedOptions {
  readonly subscriptionId: string;
  /** Whether attempts are sent with the headers and bodies of request and response. */
  readonly withBodies: boolean;
  /** The id of the last attempt that the client has received. If undefined, only attempts from now on are sent. */
  readonly after: string | undefined;
}

type Deps = Pick<WebhookDeps, "db"> & { readonly clock: Clock };

/**
 * Sends every attempt that is committed within `LOOK_BACK_MS` of its start to one stream, as fast as the client reads
 * (contract 6.18).
 */
export class AttemptFeed {
  readonly #deps: Deps;
  readonly #options: FeedOptions;
  readonly #signal: AbortSignal;
  /**
   * The first id of the attempts that are read again. All earlier attempts were sent; of the attempts from this id
   * on, those in `#sent` were sent.
   */
  #from: string;
  #sent: ReadonlySet<string> = new Set();
  #isSending = false;

  constructor(deps: Deps, options: FeedOptions, signal: AbortSignal) {
    this.#deps = deps;
    this.#options = options;
    this.#signal = signal;
    this.#from = ulidFloor(addMs(deps.clock.now(), -LOOK_BACK_MS));
  }

  /**
   * Starts after the attempt that the client names, or after the attempts that exist now. Returns the first message of
   * the stream: an id from which the client can resume, so that it misses nothing if the stream ends before the first
   * attempt is sent.
   */
  async start(): Promise<Uint8Array> {
    const { after } = this.#options;
    const bookmark = bookmarkOf(after ?? ulid(this.#deps.clock.now().getTime()));
    if (after === undefined) {
      while (!this.#signal.aborted) if ((await this.#read()).isAll) break;
    } else {
      this.#from = ulidFloor(addMs(fromMs(decodeTime(after)), -LOOK_BACK_MS));
      this.#sent = new Set([after]);
    }
    return bookmark;
  }

  /**
   * Sends new attempts, and resolves when the client has read them. Resolves immediately if a call is already
   * sending.
   */
  async sendNew(sink: EventSink): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      for (let isAll = false; !isAll && !this.#signal.aborted;) {
        const read = await this.#read();
        await this.#send(sink, read.newIds);
        ({ isAll } = read);
      }
    } finally {
      this.#isSending = false;
    }
  }

  /**
   * Returns the ids of attempts that were not sent yet. They count as sent from now on, because the stream ends if
   * sending them fails.
   */
  async #read(): Promise<{ newIds: string[]; isAll: boolean }> {
    const { db, clock } = this.#deps;
    const settled = ulidFloor(addMs(clock.now(), -LOOK_BACK_MS));
    const ids = await attemptIdsFrom(db, this.#options.subscriptionId, this.#from, IDS_AT_ONCE);
    const newIds = ids.filter((id) => !this.#sent.has(id));
    const isAll = ids.length < IDS_AT_ONCE;
    this.#sent = new Set(ids);
    if (!isAll) this.#from = ids.at(-1) ?? this.#from;
    else if (settled > this.#from) this.#from = settled;
    return { newIds, isAll };
  }

  async #send(sink: EventSink, ids: readonly string[]): Promise<void> {
    for (let from = 0; from < ids.length && !this.#signal.aborted;) {
      const some = ids.slice(from, from + ATTEMPTS_PER_SEND);
      const { rows, isCut } = await this.#show(some);
      sink.send(Buffer.concat(rows.map((one) => messageOf("attempt", one, one.id))));
      await sink.drained();
      const last = rows.at(-1);
      from += isCut && last !== undefined ? some.indexOf(last.id) + 1 : some.length;
    }
  }

  async #show(ids: readonly string[]) {
    const { db } = this.#deps;
    const { subscriptionId, withBodies } = this.#options;
    if (!withBodies) {
      const rows = await attemptsById(db, subscriptionId, ids);
      return { rows: rows.map(shownAs(AttemptSummaryObject)), isCut: false };
    }
    const { rows, isCut } = await firstById(db, subscriptionId, ids);
    return { rows: rows.map(shownAs(AttemptObject)), isCut };
  }
}
