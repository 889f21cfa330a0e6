import type { RawDb } from "../../db/client.ts";
import type { SecretBox } from "../../src/lib/secrets.ts";
import { openMail, type MailMessage } from "../../src/outbox/mail.ts";

export interface QueuedMail extends MailMessage {
  readonly kind: string;
  readonly sealed: string;
  readonly expiresAt: Date | null;
}

/** Reads the queued mails to an address, oldest first. They stay queued, because these tests run no mailer. */
export async function mailsTo(
  { db, box }: { db: RawDb; box: SecretBox },
  to: string,
): Promise<QueuedMail[]> {
  const rows = await db.sql<
    { id: string; kind: string; sealed: string; expiresAt: Date | null }[]
  >`select id, kind, sealed_message as sealed, expires_at as "expiresAt" from mails where state = 'queued' order by id`;
  const mails = rows.map((row) => ({ ...row, ...openMail(box, row.id, row.sealed) }));
  return mails.filter((mail) => mail.to === to);
}

/** Reads the six-digit code from the last mail to an address; throws if there is none. */
export async function codeSentTo(deps: { db: RawDb; box: SecretBox }, to: string): Promise<string> {
  const code = /^ {4}(\d{6})$/m.exec((await mailsTo(deps, to)).at(-1)?.text ?? "")?.[1];
  if (code === undefined) throw new Error(`No code was sent to ${to}.`);
  return code;
}

/** Makes a six-digit code that is certainly wrong. */
export function otherThan(code: string): string {
  return String((Number(code) + 1) % 1_000_000).padStart(6, "0");
}
