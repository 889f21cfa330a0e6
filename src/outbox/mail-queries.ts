import type { Tx } from "../../db/client.ts";

/** A mail as it is queued: its first attempt is due at once. */
export interface NewMailRow {
  readonly id: string;
  readonly kind: string;
  readonly sealedMessage: string;
  readonly expiresAt: Date | null;
  readonly createdAt: Date;
}

export async function insertMails(tx: Tx, mails: readonly NewMailRow[]): Promise<void> {
  const input = mails.map((mail) => ({
    id: mail.id,
    kind: mail.kind,
    sealed_message: mail.sealedMessage,
    expires_at: mail.expiresAt,
    created_at: mail.createdAt,
  }));
  await tx.sql`
    insert into mails (id, kind, sealed_message, due_at, expires_at, created_at)
    select id, kind, sealed_message, created_at, expires_at, created_at
      from json_to_recordset(${JSON.stringify(input)}::text::json) as i(
             id text, kind text, sealed_message text, expires_at timestamptz, created_at timestamptz)`;
}
