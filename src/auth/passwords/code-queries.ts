import { and, eq, sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { emailCodeLimits, emailCodes, emailCodeTries } from "../../../db/schema/sign-in.ts";
import type { Digest } from "../../lib/kind-key.ts";
import type { CodeLimits } from "../decide.ts";
import type { CodeType } from "./model.ts";

const { emailDigest, issuedAt, wrongAt, touchedAt } = emailCodeLimits;

/**
 * Locks the code counters of an email until the commit and returns them, whether or not the email is known. Requests
 * that issue or verify a code for the same email therefore run one after the other.
 */
export async function holdCodeLimits(tx: Tx, digest: Digest, now: Date): Promise<CodeLimits> {
  const [row] = await tx
    .insert(emailCodeLimits)
    .values({ emailDigest: digest, touchedAt: now, issuedAt: [], wrongAt: [] })
    .onConflictDoUpdate({
      target: emailDigest,
      set: { touchedAt: sql`greatest(${touchedAt}, excluded.touched_at)` },
    })
    .returning({ issuedAt, wrongAt });
  return row ?? { issuedAt: [], wrongAt: [] };
}

export async function saveIssues(tx: Tx, digest: Digest, instants: Date[]): Promise<void> {
  await tx.update(emailCodeLimits).set({ issuedAt: instants }).where(eq(emailDigest, digest));
}

export async function saveWrongTries(
  tx: Tx,
  digest: Digest<"email">,
  instants: Date[],
): Promise<void> {
  await tx.update(emailCodeLimits).set({ wrongAt: instants }).where(eq(emailDigest, digest));
}

interface EmailAndNetwork {
  readonly emailDigest: Digest<"email">;
  readonly network: string;
}

/**
 * Reads the instants of wrong codes for an email from one network. Callers of this function and of `saveWrongTriesFrom`
 * must hold the lock on the email's code counters.
 */
export async function findWrongTriesFrom(tx: Tx, key: EmailAndNetwork): Promise<readonly Date[]> {
  const isOfKey = and(
    eq(emailCodeTries.emailDigest, key.emailDigest),
    eq(emailCodeTries.network, key.network),
  );
  const [row] = await tx
    .select({ wrongAt: emailCodeTries.wrongAt })
    .from(emailCodeTries)
    .where(isOfKey);
  return row?.wrongAt ?? [];
}

export async function saveWrongTriesFrom(
  tx: Tx,
  key: EmailAndNetwork,
  { wrongAt: instants, now }: { wrongAt: Date[]; now: Date },
): Promise<void> {
  const set = { wrongAt: instants, touchedAt: now };
  await tx
    .insert(emailCodeTries)
    .values({ ...key, ...set })
    .onConflictDoUpdate({ target: [emailCodeTries.emailDigest, emailCodeTries.network], set });
}

type EmailCodeRow = typeof emailCodes.$inferSelect;
export type CodeRow = Omit<EmailCodeRow, "emailDigest" | "type">;

const isOfPurpose = (digest: Digest<"email">, type: CodeType) =>
  and(eq(emailCodes.emailDigest, digest), eq(emailCodes.type, type));

export async function findCode(
  db: DbOrTx,
  digest: Digest<"email">,
  type: CodeType,
): Promise<CodeRow | undefined> {
  const [row] = await db.select().from(emailCodes).where(isOfPurpose(digest, type));
  return row;
}

/** Stores a code. It replaces the last code for the same email and purpose, which stops working. */
export async function saveCode(
  tx: Tx,
  code: Omit<EmailCodeRow, "tries" | "consumedAt"> & { readonly emailDigest: Digest<"email"> },
): Promise<void> {
  const { emailDigest: digest, type, ...issued } = code;
  const set = { ...issued, tries: 0, consumedAt: null };
  await tx
    .insert(emailCodes)
    .values({ emailDigest: digest, type, ...set })
    .onConflictDoUpdate({ target: [emailCodes.emailDigest, emailCodes.type], set });
}

export async function countTry(tx: Tx, digest: Digest<"email">, type: CodeType): Promise<void> {
  await tx
    .update(emailCodes)
    .set({ tries: sql`${emailCodes.tries} + 1` })
    .where(isOfPurpose(digest, type));
}

export async function consumeCode(
  tx: Tx,
  { digest, type, now }: { digest: Digest<"email">; type: CodeType; now: Date },
): Promise<void> {
  await tx.update(emailCodes).set({ consumedAt: now }).where(isOfPurpose(digest, type));
}

/** Sets a savepoint, so that the statements after it can be rolled back without those before it. */
export async function openTrial(tx: Tx): Promise<void> {
  await tx.execute(sql`savepoint trial`);
}

export async function keepTrial(tx: Tx): Promise<void> {
  await tx.execute(sql`release savepoint trial`);
}

export async function undoTrial(tx: Tx): Promise<void> {
  await tx.execute(sql`rollback to savepoint trial`);
}
