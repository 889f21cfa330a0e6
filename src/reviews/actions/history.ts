import type { Db } from "../../../db/client.ts";
import type { Page } from "../../http/list.ts";
import { type Clock, parseInstant } from "../../lib/clock.ts";
import { unavailable } from "../../lib/problem.ts";
import type { PartnerHistoryQuery, PartnerHistoryRow } from "../model.ts";
import { lastHistoryId, openWriters, partnerHistory } from "../queries/history.ts";

/** The longest wait in milliseconds for transactions that are writing to the history. */
const WAIT_MS = 2_000;
/** The pause in milliseconds between two looks at these transactions. */
const LOOK_MS = 10;

interface HistoryDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * Reads the history of partners in the order of its ids. A transaction that took an id early may commit late, after
 * rows with larger ids. A reader that continues after the last row it saw would never see such a row, so a page ends
 * before the first id that an open transaction may still use (contract 9.6).
 */
export class HistoryReader {
  readonly #deps: HistoryDeps;
  /** The last id up to which every transaction had ended when this process looked. */
  #settledThrough: number | undefined;

  constructor(deps: HistoryDeps) {
    this.#deps = deps;
  }

  /** Returns one row more than the page has if there are more rows. Throws `unavailable` as `#settle` does. */
  async list(
    partnerId: number,
    query: PartnerHistoryQuery,
    page: Page,
  ): Promise<PartnerHistoryRow[]> {
    const through = await this.#settle();
    return partnerHistory(this.#deps.db, {
      partnerId,
      after: page.after ?? query.after?.toString(),
      since: parseInstant(query.since),
      through,
      limit: page.limit + 1,
    });
  }

  /**
   * Returns an id up to which no row can appear any more: the last one, once the transactions have ended that may
   * have taken it or an earlier one. If one of them is still open after `WAIT_MS`, returns the id of the last look that
   * succeeded, and throws `unavailable` if none has.
   */
  async #settle(): Promise<number> {
    const { db, clock } = this.#deps;
    const last = await lastHistoryId(db);
    const untilMs = clock.monotonicMs() + WAIT_MS;
    let open = await openWriters(db);
    while (open.size > 0 && clock.monotonicMs() < untilMs) {
      await clock.sleep(LOOK_MS);
      open = open.intersection(await openWriters(db));
    }
    if (open.size === 0) this.#settledThrough = last;
    if (this.#settledThrough === undefined) throw unavailable();
    // A restored database may have given out fewer ids than this process has seen.
    return Math.min(this.#settledThrough, last);
  }
}
