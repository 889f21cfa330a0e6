import { and, like, min, sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { EXIT_CONFIG } from "../lib/config.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import { SEALED_COLUMNS, type SealedColumn } from "./sealed-columns.ts";

export const MASTER_KEY_REMEDY =
  "Set MASTER_KEY (or MASTER_KEY_FILE) to the key of this database; while it changes, the old one as MASTER_KEY_PREVIOUS.";

/**
 * Ends a process whose master key does not open what is stored: it would sign nothing, deliver nothing and show
 * nothing, one error at a time. Restarting it cannot help.
 */
export async function masterKeyOrExit(db: Db, box: SecretBox): Promise<void> {
  const fault = await masterKeyFault(db, box);
  if (fault === undefined) return;
  console.error(`${fault} ${MASTER_KEY_REMEDY}`);
  process.exit(EXIT_CONFIG);
}

/** One line that says which key is missing; nothing if the keys at hand seal all that is stored. */
export async function masterKeyFault(db: Db, box: SecretBox): Promise<string | undefined> {
  for (const column of SEALED_COLUMNS) {
    const samples = await sampleOfEachKey(db, column);
    const unknown = samples.find((sealed) => !box.isKnown(sealed));
    if (unknown === undefined) continue;
    const [, keyId] = unknown.split(".");
    return (
      `The master key is wrong: ${column.table}.${column.column} holds values sealed with key ${keyId}, ` +
      "which is neither MASTER_KEY nor MASTER_KEY_PREVIOUS."
    );
  }
  return undefined;
}

async function sampleOfEachKey(db: Db, { sealed, where }: SealedColumn): Promise<string[]> {
  const rows = await db
    .select({ sample: min(sealed) })
    .from(sealed.table)
    .where(and(like(sealed, "v1.%"), where))
    .groupBy(sql`split_part(${sealed}, '.', 2)`);
  return rows.flatMap(({ sample }) => (typeof sample === "string" ? [sample] : []));
}
