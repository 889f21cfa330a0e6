import { createHmac, hkdfSync } from "node:crypto";

import { equalInConstantTime } from "../lib/secret-box.ts";

const KEY_BYTES = 32;

/**
 * Computes the MAC that is stored in place of a mailed code. A hash without a key could be reversed, because a code
 * has only six digits (contract 4.14).
 */
export interface CodeMac {
  /** Computes the MAC of a code. `context` is the associated data that ties the code to its email and purpose. */
  sign(code: string, context: string): string;
  matches(mac: string, code: string, context: string): boolean;
}

/**
 * Creates the MAC of mailed codes. Its keys are derived from the master keys; the previous master key only verifies,
 * so that mailed codes survive a change of the master key.
 */
export function createCodeMac(keys: {
  masterKey: Uint8Array;
  masterKeyPrevious: Uint8Array | undefined;
}): CodeMac {
  const current = deriveKey(keys.masterKey);
  const known = [current, ...(keys.masterKeyPrevious ? [deriveKey(keys.masterKeyPrevious)] : [])];
  return {
    sign: (code, context) => macOf(current, code, context),
    matches: (mac, code, context) =>
      known.map((key) => equalInConstantTime(macOf(key, code, context), mac)).includes(true),
  };
}

function deriveKey(masterKey: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", masterKey, "", "reviewrelay:email-code", KEY_BYTES));
}

function macOf(key: Uint8Array, code: string, context: string): string {
  return createHmac("sha256", key).update(`${context}\0${code}`).digest("hex");
}
