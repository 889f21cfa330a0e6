import type { RawDb } from "../../db/client.ts";
import { signingKeyAssociatedData } from "../../src/auth/keys/key-ring.ts";
import {
  insertSigningKey,
  listSigningKeys,
  type NewSigningKey,
} from "../../src/auth/keys/queries.ts";
import type { SecretBox } from "../../src/lib/secrets.ts";

/**
 * Gives a database without signing keys those of this run, sealed with its own master key. An API that starts without
 * keys generates them, which takes longer than the rest of its start.
 */
export async function addSigningKeys(db: RawDb, box: SecretBox, now: Date): Promise<void> {
  if ((await listSigningKeys(db)).length > 0) return;
  const [current, next]: NewSigningKey[] = JSON.parse(process.env["TEST_SIGNING_KEYS"] ?? "[]");
  for (const [state, key] of [
    ["current", current],
    ["next", next],
  ] as const) {
    if (key === undefined) throw new Error("Run the tests with scripts/test.ts, which makes keys.");
    const { kid, publicJwk, sealedPrivateKey: open } = key;
    const sealedPrivateKey = box.seal(open, signingKeyAssociatedData(kid));
    await insertSigningKey(db, { kid, publicJwk, sealedPrivateKey, state, now });
  }
}
