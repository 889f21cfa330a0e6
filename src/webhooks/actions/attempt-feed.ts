import { decodeTime, ulid } from "ulid";

import { ulidFloor } from "../../../db/partitions.ts";
import { bookmarkOf, messageOf, type EventSink } from "../../http/event-stream.ts";
import { addMs, fromMs, type Clock } from "../../lib/clock.ts";
import { showAttempt, showAttemptSummary } from "../delivery-model.ts";
import { attemptIdsFrom, attemptsById, withRequests } from "../queries/attempts.ts";
import type { WebhookDeps } from "./deps.ts";

/**
 * An attempt is named by its start and committed after its end, so it may appear behind others that began later: until
 * one is this old, those before it may still come. One that is committed later than this after its start is not told.
 */
export const LOOK_BACK_MS = 30_000;
/** Ids that are read at once: all of the last 30 s at 650 attempts a second. */
const IDS_AT_ONCE = 20_000;
/** Attempts with their bodies that are held in memory for a stream. */
const TOLD_AT_ONCE = 100;

export interface FeedOptions {
  readonly subscriptionId: string;
  /** With what was sent and answered. */
  readonly withBodies: boolean;
  /** The last attempt that the client has heard of; without it, it hears of those that follow. */
  readonly after: string | undefined;
}

type Deps = Pick<WebhookDeps, "db"> & { readonly clock: Clock };

/**
 * Tells one stream of every attempt that is committed within `LOOK_BACK_MS` of its start, as fast as its client reads
 * (contract 6.18).
 */
export class AttemptFeed {
  readonly #deps: Deps;
  readonly #options: FeedOptions;
  readonly #signal: AbortSignal;
  /** The id before which all was told; of what follows, `#told` was. */
  #from: string;
  #told: ReadonlySet<string> = new Set();
  #isTelling = false;

  constructor(deps: Deps, options: FeedOptions, signal: AbortSignal) {
    this.#deps = deps;
    this.#options = options;
    this.#signal = signal;
    this.#from = ulidFloor(addMs(deps.clock.now(), -LOOK_BACK_MS));
  }

  /**
   * What happened until now is told to nobody, but what followed the last one that the client names. Answers what the
   * client hears first: an id of this moment, so that it misses nothing if the connection ends before an attempt came.
   */
  async begin(): Promise<Uint8Array> {
    const { after } = this.#options;
    const bookmark = bookmarkOf(after ?? ulid(this.#deps.clock.now().getTime()));
    if (after === undefined) {
      while (!this.#signal.aborted) if ((await this.#read()).isAll) break;
    } else {
      this.#from = ulidFloor(addMs(fromMs(decodeTime(after)), -LOOK_BACK_MS));
      this.#told = new Set([after]);
    }
    return bookmark;
  }

  /** Tells what is new, and comes back when its client has taken it; at once while that is under way already. */
  async tell(sink: EventSink): Promise<void> {
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      for (let isAll = false; !isAll && !this.#signal.aborted;) {
        const read = await this.#read();
        await this.#send(sink, read.news);
        ({ isAll } = read);
      }
    } finally {
      this.#isTelling = false;
    }
  }

  /** What was not told yet. It counts as told from here on: a stream that fails to tell it ends. */
  async #read(): Promise<{ news: string[]; isAll: boolean }> {
    const { db, clock } = this.#deps;
    const settled = ulidFloor(addMs(clock.now(), -LOOK_BACK_MS));
    const ids = await attemptIdsFrom(db, this.#options.subscriptionId, this.#from, IDS_AT_ONCE);
    const news = ids.filter((id) => !this.#told.has(id));
    const isAll = ids.length < IDS_AT_ONCE;
    this.#told = new Set(ids);
    if (!isAll) this.#from = ids.at(-1) ?? this.#from;
    else if (settled > this.#from) this.#from = settled;
    return { news, isAll };
  }

  async #send(sink: EventSink, ids: readonly string[]): Promise<void> {
    for (let i = 0; i < ids.length && !this.#signal.aborted; i += TOLD_AT_ONCE) {
      const shown = await this.#show(ids.slice(i, i + TOLD_AT_ONCE));
      sink.send(Buffer.concat(shown.map((one) => messageOf("attempt", one, one.id))));
      await sink.drained();
    }
  }

  async #show(ids: readonly string[]) {
    const { db } = this.#deps;
    const { subscriptionId, withBodies } = this.#options;
    const rows = await attemptsById(db, subscriptionId, ids);
    return withBodies
      ? (await withRequests(db, rows)).map(showAttempt)
      : rows.map(showAttemptSummary);
  }
}
