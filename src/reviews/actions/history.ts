import type { Db } from "../../../db/client.ts";
import type { Found, Page } from "../../http/list.ts";
import { type Clock, parseInstant } from "../../lib/clock.ts";
import { settledThrough } from "../../outbox/settled-ids.ts";
import type { PartnerHistoryQuery, PartnerHistoryRow } from "../model.ts";
import { partnerHistory } from "../queries/history.ts";

interface HistoryDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * Reads the history of a partner in the order of its ids, without skipping a row that commits late (contract 9.6).
 * Returns one row more than the page has if there are more rows. Throws `unavailable` as `settledThrough` does.
 */
export async function listHistory(
  deps: HistoryDeps,
  partnerId: number,
  query: PartnerHistoryQuery,
  page: Page,
): Promise<Found<PartnerHistoryRow>> {
  const through = await settledThrough(deps, "review_history");
  return partnerHistory(deps.db, {
    partnerId,
    after: page.after ?? query.after?.toString(),
    since: parseInstant(query.since),
    through,
    limit: page.limit + 1,
  });
}
