import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../queries/audit.ts";
import type { Clock } from "../../lib/clock.ts";
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
 * Runs `bun run keys rotate`: the signing key `next` becomes `current`, `current` becomes `retired`, and a new `next`
 * is generated. Running API processes notice the rotation within seconds. Until then they sign with the key that was
 * just retired, which still verifies.
 */
export async function rotateKeys(deps: {
  db: Db;
  box: SecretBox;
  clock: Clock;
}): Promise<Rotation> {
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
    const rotation = { retired, current, next: fresh.kid };
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
