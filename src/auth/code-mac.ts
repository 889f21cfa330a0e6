import { createHmac, hkdfSync } from "node:crypto";

import { equalInConstantTime } from "../lib/secret-box.ts";

const KEY_BYTES = 32;

/**
 * Makes what is stored instead of a mailed code: of six digits a hash without a key could be reversed (contract 4.14).
 */
export interface CodeMac {
  /** `context` ties the code to its email and purpose. */
  sign(code: string, context: string): string;
  matches(mac: string, code: string, context: string): boolean;
}

/**
 * Derives its keys from the master keys. The previous one only checks, so that codes outlive a change of the master
 * key.
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
