import type { DbOrTx, Tx } from "../../../db/client.ts";
import { parseInstant } from "../../lib/clock.ts";
import type { CodeLimits, EmailCode } from "../decide.ts";
import type { CodeType } from "../password-model.ts";

/**
 * Holds the email until the commit, known or not, and answers what was asked for it lately: whoever issues or tries a
 * code does so one after the other.
 */
export async function holdCodeLimits(tx: Tx, digest: string, now: Date): Promise<CodeLimits> {
  const [row] = await tx.sql<{ issued: string[]; wrong: string[] }[]>`
    insert into email_code_limits as l (email_digest, issued_at, wrong_at, touched_at)
    values (${digest}, '{}', '{}', ${now})
    on conflict (email_digest) do update set touched_at = greatest(l.touched_at, excluded.touched_at)
    returning to_json(issued_at) as issued, to_json(wrong_at) as wrong`;
  return { issuedAt: instants(row?.issued ?? []), wrongAt: instants(row?.wrong ?? []) };
}

/** The driver converts single instants only. */
function instants(texts: readonly string[]): Date[] {
  return texts.map(parseInstant).filter((at) => at !== undefined);
}

const iso = (at: Date): string => at.toISOString();

export async function saveIssues(tx: Tx, digest: string, issuedAt: readonly Date[]): Promise<void> {
  await tx.sql`
    update email_code_limits set issued_at = ${issuedAt.map(iso)}::text[]::timestamptz[]
    where email_digest = ${digest}`;
}

export async function saveWrongTries(
  tx: Tx,
  digest: string,
  wrongAt: readonly Date[],
): Promise<void> {
  await tx.sql`
    update email_code_limits set wrong_at = ${wrongAt.map(iso)}::text[]::timestamptz[]
    where email_digest = ${digest}`;
}

export interface CodeRow extends EmailCode {
  readonly codeMac: string;
}

export async function findCode(
  db: DbOrTx,
  digest: string,
  type: CodeType,
): Promise<CodeRow | undefined> {
  const [row] = await db.sql<CodeRow[]>`
    select user_id as "userId", code_mac as "codeMac", tries, issued_at as "issuedAt", expires_at as "expiresAt",
      consumed_at as "consumedAt"
    from email_codes where email_digest = ${digest} and type = ${type}`;
  return row;
}

/** Takes the place of the last code, which works no more. */
export async function saveCode(
  tx: Tx,
  code: Pick<CodeRow, "userId" | "codeMac" | "issuedAt" | "expiresAt"> & {
    digest: string;
    type: CodeType;
  },
): Promise<void> {
  await tx.sql`
    insert into email_codes (email_digest, type, user_id, code_mac, tries, issued_at, expires_at)
    values (${code.digest}, ${code.type}, ${code.userId}, ${code.codeMac}, 0, ${code.issuedAt}, ${code.expiresAt})
    on conflict (email_digest, type) do update set
      user_id = excluded.user_id, code_mac = excluded.code_mac, tries = 0, issued_at = excluded.issued_at,
      expires_at = excluded.expires_at, consumed_at = null`;
}

export async function countTry(tx: Tx, digest: string, type: CodeType): Promise<void> {
  await tx.sql`
    update email_codes set tries = tries + 1 where email_digest = ${digest} and type = ${type}`;
}

export async function consumeCode(
  tx: Tx,
  code: { digest: string; type: CodeType; now: Date },
): Promise<void> {
  await tx.sql`
    update email_codes set consumed_at = ${code.now}
    where email_digest = ${code.digest} and type = ${code.type}`;
}

/** The rows stay for the cooldown. */
export async function consumeCodesOf(tx: Tx, userId: number, now: Date): Promise<void> {
  await tx.sql`
    update email_codes set consumed_at = ${now} where user_id = ${userId} and consumed_at is null`;
}

/** Ends what is pending at the authorize page and between it and the client. */
export async function deleteAuthorizationCodesOf(tx: Tx, userId: number): Promise<void> {
  await tx.sql`delete from authorization_codes where user_id = ${userId}`;
}

/** What comes after can be taken back without the rest of the transaction. */
export async function openTrial(tx: Tx): Promise<void> {
  await tx.sql`savepoint trial`;
}

export async function keepTrial(tx: Tx): Promise<void> {
  await tx.sql`release savepoint trial`;
}

export async function undoTrial(tx: Tx): Promise<void> {
  await tx.sql`rollback to savepoint trial`;
}
