import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../queries/audit.ts";
import { addMs, type Clock, isoInstant } from "../../lib/clock.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { activateNextKey, insertSigningKey, retireCurrentKey } from "../queries/keys.ts";
import { generateSigningKey } from "../key-ring.ts";

/** The ids of the signing keys after a rotation, by their new state. */
interface Rotation {
  readonly retired: string;
  readonly current: string;
  readonly next: string;
}

/**
 * The time in ms for which a signing key is published before it signs. Meanwhile a cache and the resource server behind it
 * may each keep the key set for half of that time (contract 4.4). Libraries that keep it longer, such as that of the Go
 * example, read it again at an unknown key.
 */
export const PUBLISHED_MS = 3_600_000;

/**
 * Runs `bun run keys rotate`: the signing key `next` becomes `current`, `current` becomes `retired`, and a new `next`
 * is generated. Running API processes notice the rotation within seconds. Until then they sign with the key that was
 * just retired, which still verifies. Throws while `next` is published for less than `PUBLISHED_MS`, unless forced.
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
        "The key ring is not complete, or another rotation is under way; start the API once, or try again.",
      );
    const usableAt = addMs(current.createdAt, PUBLISHED_MS);
    if (now < usableAt && !isForced)
      throw new Error(
        `Nothing was changed. The next key ${current.kid} was published at ${isoInstant(current.createdAt)}, and programs that check ` +
          `tokens may keep the keys of before for an hour: rotate at ${isoInstant(usableAt)} or later. With --force, they may ` +
          "refuse new tokens until then.",
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
