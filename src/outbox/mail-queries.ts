import { sql } from "drizzle-orm";

import type { Tx } from "../../db/client.ts";
import { mails } from "../../db/schema/alerts.ts";
import { rows, statement, type ValuesOf } from "../../db/statement.ts";

const QUEUED = {
  id: mails.id,
  kind: mails.kind,
  sealedMessage: mails.sealedMessage,
  expiresAt: mails.expiresAt,
  createdAt: mails.createdAt,
};

/** A mail as it is queued: its first attempt is due at once. */
export type NewMailRow = ValuesOf<typeof QUEUED> & { readonly sealedMessage: string };

const insertion = statement({
  name: "mails.insert",
  // A request of a provider may queue 500 mails: they are one parameter that is a table, not 500 rows of parameters.
  params: { given: rows(QUEUED) },
  text: ({ given }) => sql`
    insert into mails (id, kind, sealed_message, due_at, expires_at, created_at)
    select id, kind, "sealedMessage", "createdAt", "expiresAt", "createdAt" from ${given}`,
});

export async function insertMails(tx: Tx, given: readonly NewMailRow[]): Promise<void> {
  await tx.run(insertion, { given });
}
