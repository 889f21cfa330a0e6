import type { Tx } from "../../db/client.ts";

/** A mail as it is queued: its first attempt is due at once. */
export interface NewMailRow {
  readonly id: string;
  readonly kind: string;
  readonly sealedMessage: string;
  readonly expiresAt: Date | null;
  readonly createdAt: Date;
}

export async function insertMail(tx: Tx, mail: NewMailRow): Promise<void> {
  await tx.sql`
    insert into mails (id, kind, sealed_message, due_at, expires_at, created_at)
    values (${mail.id}, ${mail.kind}, ${mail.sealedMessage}, ${mail.createdAt}, ${mail.expiresAt}, ${mail.createdAt})`;
}
