import type { Db } from "../../../db/client.ts";
import type { Page } from "../../http/list.ts";
import { type Clock, parseInstant } from "../../lib/clock.ts";
import { SettledIds } from "../../outbox/settled-ids.ts";
import type { PartnerHistoryQuery, PartnerHistoryRow } from "../model.ts";
import { partnerHistory } from "../queries/history.ts";

interface HistoryDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/** Reads the history of partners in the order of its ids, without skipping a row that commits late (contract 9.6). */
export class HistoryReader {
  readonly #deps: HistoryDeps;
  readonly #settled: SettledIds;

  constructor(deps: HistoryDeps) {
    this.#deps = deps;
    this.#settled = new SettledIds(deps, "review_history");
  }

  /** Returns one row more than the page has if there are more rows. Throws `unavailable` as `SettledIds` does. */
  async list(
    partnerId: number,
    query: PartnerHistoryQuery,
    page: Page,
  ): Promise<PartnerHistoryRow[]> {
    const through = await this.#settled.through();
    return partnerHistory(this.#deps.db, {
      partnerId,
      after: page.after ?? query.after?.toString(),
      since: parseInstant(query.since),
      through,
      limit: page.limit + 1,
    });
  }
}
