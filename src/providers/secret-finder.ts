import type { Db } from "../../db/client.ts";
import type { Clock } from "../lib/clock.ts";
import { inGroups } from "../lib/groups.ts";
import { sealedSecretsOf } from "./queries/finders.ts";

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
