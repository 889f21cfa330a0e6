import type { Db } from "../../db/client.ts";
import * as queries from "./queries/finders.ts";

/** The partners of connections, each once; none for a connection that does not exist. */
export type PartnerFinder = (siteIds: readonly number[]) => Promise<number[]>;

const REMEMBERED = 100_000;

/** Looks each connection up once, because its partner never changes. Past the limit all are forgotten. */
export function createPartnerFinder(db: Db): PartnerFinder {
  const known = new Map<number, number>();
  return async (siteIds) => {
    const unknown = siteIds.filter((id) => !known.has(id));
    const found = unknown.length === 0 ? [] : await queries.partnersOf(db, [...new Set(unknown)]);
    if (known.size + found.length > REMEMBERED) known.clear();
    for (const { id, partnerId } of found) known.set(id, partnerId);
    return [...new Set(siteIds.flatMap((id) => known.get(id) ?? []))];
  };
}
