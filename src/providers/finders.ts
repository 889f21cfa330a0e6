import type { Db } from "../../db/client.ts";
import type { Clock } from "../lib/clock.ts";
import { inGroups } from "../lib/groups.ts";
import { partnersOf, sealedSecretsOf } from "./queries/finders.ts";

/** The sealed secrets of providers. */
export interface SecretFinder {
  /** Answers the secret as it was read last, which may have been changed since; undefined before the first read. */
  remembered(slug: string): string | undefined;
  /** Reads the secret; undefined if there is no such provider. Reads at the same time share a statement. */
  read(slug: string): Promise<string | undefined>;
}

const LIMITS = { questions: 256, waiting: 4_096, waitMs: 6_000 };
const SECRETS_REMEMBERED = 1_000;

export function createSecretFinder(db: Db, clock: Clock): SecretFinder {
  const known = new Map<string, string>();
  const answer = async (slugs: readonly string[]) => {
    const found = await sealedSecretsOf(db, [...new Set(slugs)]);
    if (known.size + found.size > SECRETS_REMEMBERED) known.clear();
    for (const [slug, sealed] of found) known.set(slug, sealed);
    return slugs.map((slug) => found.get(slug));
  };
  return { remembered: (slug) => known.get(slug), read: inGroups(clock, answer, LIMITS) };
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
