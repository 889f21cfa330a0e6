import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import { addMs, type Clock, isoInstant } from "../../lib/clock.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { activateNextKey, insertSigningKey, retireCurrentKey } from "./queries.ts";
import { generateSigningKey } from "./key-ring.ts";

/** The ids of the signing keys that a rotation has moved, by their new state. */
interface Rotation {
  readonly retired: string;
  readonly current: string;
  readonly next: string;
}

/**
 * Time in ms for which a signing key is published before it signs. A cache and the resource server behind it may each
 * keep the key set for half of that time (contract 4.4). Some libraries, such as that of the Go example, keep it
 * longer, but fetch it again when a token names an unknown key.
 */
export const PUBLISHED_MS = 3_600_000;

/**
 * Runs `bun run keys rotate`: the signing key `next` becomes `current`, `current` becomes `retired`, and a new `next`
 * is generated. Running API processes notice the rotation within seconds. Until then they sign with the key that was
 * just retired, which still verifies. Unless `isForced` is set, throws if `next` has been published for less than
 * `PUBLISHED_MS`.
 */
export async function rotateKeys(
  deps: { db: Db; box: SecretBox; clock: Clock },
  { isForced }: { isForced: boolean },
): Promise<Rotation> {
  const fresh = await generateSigningKey(deps.box);
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    const retired = await retireCurrentKey(tx, now);
    const current = await activateNextKey(tx, now);
    const inserted = await insertSigningKey(tx, { ...fresh, state: "next", now });
    if (retired === undefined || current === undefined || !inserted)
      throw new Error(
        "The key ring is not complete, or another rotation is in progress. Start the API once, or try again.",
      );
    const usableAt = addMs(current.createdAt, PUBLISHED_MS);
    if (now < usableAt && !isForced)
      throw new Error(
        `Nothing was changed. The next key ${current.kid} was published at ${isoInstant(current.createdAt)}, and programs that check ` +
          `tokens may cache the previous keys for an hour: rotate at ${isoInstant(usableAt)} or later. With --force, they may ` +
          "reject new tokens until then.",
      );
    const rotation = { retired, current: current.kid, next: fresh.kid };
    await recordAudit(tx, {
      at: now,
      action: "KEY_ROTATED",
      actor: null,
      requestContext: null,
      details: rotation,
    });
    return rotation;
  });
}
