import { and, eq, sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { emailCodeLimits, emailCodes } from "../../../db/schema/sign-in.ts";
import { statement } from "../../../db/statement.ts";
import type { CodeLimits } from "../decide.ts";
import type { CodeType } from "../password-model.ts";

/**
 * Holds the email until the commit, known or not, and answers what was asked for it lately: whoever issues or tries a
 * code does so one after the other.
 */
export async function holdCodeLimits(tx: Tx, digest: string, now: Date): Promise<CodeLimits> {
  const latest = sql`greatest(${emailCodeLimits.touchedAt}, excluded.touched_at)`;
  const [row] = await tx
    .insert(emailCodeLimits)
    .values({ emailDigest: digest, issuedAt: [], wrongAt: [], touchedAt: now })
    .onConflictDoUpdate({ target: emailCodeLimits.emailDigest, set: { touchedAt: latest } })
    .returning({ issuedAt: emailCodeLimits.issuedAt, wrongAt: emailCodeLimits.wrongAt });
  return row ?? { issuedAt: [], wrongAt: [] };
}

export async function saveIssues(tx: Tx, digest: string, issuedAt: Date[]): Promise<void> {
  await tx.update(emailCodeLimits).set({ issuedAt }).where(eq(emailCodeLimits.emailDigest, digest));
}

export async function saveWrongTries(tx: Tx, digest: string, wrongAt: Date[]): Promise<void> {
  await tx.update(emailCodeLimits).set({ wrongAt }).where(eq(emailCodeLimits.emailDigest, digest));
}

export type CodeRow = Omit<typeof emailCodes.$inferSelect, "emailDigest" | "type">;

const ofPurpose = (digest: string, type: CodeType) =>
  and(eq(emailCodes.emailDigest, digest), eq(emailCodes.type, type));

export async function findCode(
  db: DbOrTx,
  digest: string,
  type: CodeType,
): Promise<CodeRow | undefined> {
  const [row] = await db.select().from(emailCodes).where(ofPurpose(digest, type));
  return row;
}

/** Takes the place of the last code, which works no more. */
export async function saveCode(
  tx: Tx,
  code: Omit<typeof emailCodes.$inferInsert, "tries" | "consumedAt">,
): Promise<void> {
  const { userId, codeMac, issuedAt, expiresAt } = code;
  const fresh = { userId, codeMac, tries: 0, issuedAt, expiresAt, consumedAt: null };
  await tx
    .insert(emailCodes)
    .values({ ...code, ...fresh })
    .onConflictDoUpdate({ target: [emailCodes.emailDigest, emailCodes.type], set: fresh });
}

export async function countTry(tx: Tx, digest: string, type: CodeType): Promise<void> {
  await tx
    .update(emailCodes)
    .set({ tries: sql`${emailCodes.tries} + 1` })
    .where(ofPurpose(digest, type));
}

export async function consumeCode(
  tx: Tx,
  code: { digest: string; type: CodeType; now: Date },
): Promise<void> {
  await tx
    .update(emailCodes)
    .set({ consumedAt: code.now })
    .where(ofPurpose(code.digest, code.type));
}

const savepoint = (name: string, text: string) =>
  statement({
    name,
    reason: "A savepoint is no query, and which of two ends it takes must not show in the time.",
    params: {},
    columns: {},
    text: () => sql.raw(text),
  });
const trialBegins = savepoint("openTrial", "savepoint trial");
const trialIsKept = savepoint("keepTrial", "release savepoint trial");
const trialIsUndone = savepoint("undoTrial", "rollback to savepoint trial");

/** What comes after can be taken back without the rest of the transaction. */
export async function openTrial(tx: Tx): Promise<void> {
  await tx.run(trialBegins, {});
}

export async function keepTrial(tx: Tx): Promise<void> {
  await tx.run(trialIsKept, {});
}

export async function undoTrial(tx: Tx): Promise<void> {
  await tx.run(trialIsUndone, {});
}
