import type { Db } from "../../db/client.ts";
import type { Clock } from "../lib/clock.ts";
import { inGroups } from "../lib/groups.ts";
import { partnersOf, sealedSecretsOf } from "./queries/finders.ts";

/** The sealed secret of a provider, as it is after the call; undefined if there is no such provider. */
export type SecretFinder = (slug: string) => Promise<string | undefined>;

const LIMITS = { questions: 256, waiting: 4_096, waitMs: 6_000 };

/** Requests that come at the same time share a look-up. Nothing is remembered: a secret that was changed holds at once. */
export function createSecretFinder(db: Db, clock: Clock): SecretFinder {
  const answer = async (slugs: readonly string[]) => {
    const found = await sealedSecretsOf(db, [...new Set(slugs)]);
    return slugs.map((slug) => found.get(slug));
  };
  return inGroups(clock, answer, LIMITS);
}

/** The partners of connections, each once; none for a connection that does not exist. */
export type PartnerFinder = (siteIds: readonly number[]) => Promise<number[]>;

const REMEMBERED = 100_000;

/** Looks each connection up once, because its partner never changes. Past the limit all are forgotten. */
export function createPartnerFinder(db: Db): PartnerFinder {
  const known = new Map<number, number>();
  return async (siteIds) => {
    const unknown = siteIds.filter((id) => !known.has(id));
    const found = unknown.length === 0 ? [] : await partnersOf(db, [...new Set(unknown)]);
    if (known.size + found.length > REMEMBERED) known.clear();
    for (const { id, partnerId } of found) known.set(id, partnerId);
    return [...new Set(siteIds.flatMap((id) => known.get(id) ?? []))];
  };
}
