import { and, eq, getTableColumns, sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { prepared } from "../../../db/session.ts";
import { emailCodeLimits, emailCodes, emailCodeTries } from "../../../db/schema/sign-in.ts";
import { statement, type ValuesOf } from "../../../db/statement.ts";
import type { CodeLimits } from "../decide.ts";
import type { CodeType } from "../password-model.ts";

const { emailDigest, issuedAt, wrongAt, touchedAt } = emailCodeLimits;

const heldLimits = prepared({ emailDigest, touchedAt }, (db, given) =>
  db
    .insert(emailCodeLimits)
    .values({ ...given, issuedAt: [], wrongAt: [] })
    .onConflictDoUpdate({
      target: emailDigest,
      set: { touchedAt: sql`greatest(${touchedAt}, excluded.touched_at)` },
    })
    .returning({ issuedAt, wrongAt }),
);

/**
 * Locks the code counters of an email until the commit, whether or not the email is known, and returns them. Requests
 * that issue or verify a code for the same email therefore run one after the other.
 */
export async function holdCodeLimits(tx: Tx, digest: string, now: Date): Promise<CodeLimits> {
  const [row] = await heldLimits(tx, { emailDigest: digest, touchedAt: now });
  return row ?? { issuedAt: [], wrongAt: [] };
}

const savedIssues = prepared({ emailDigest, issuedAt }, (db, given) =>
  db
    .update(emailCodeLimits)
    .set({ issuedAt: given.issuedAt })
    .where(eq(emailDigest, given.emailDigest)),
);

export async function saveIssues(tx: Tx, digest: string, instants: Date[]): Promise<void> {
  await savedIssues(tx, { emailDigest: digest, issuedAt: instants });
}

const savedWrongTries = prepared({ emailDigest, wrongAt }, (db, given) =>
  db
    .update(emailCodeLimits)
    .set({ wrongAt: given.wrongAt })
    .where(eq(emailDigest, given.emailDigest)),
);

export async function saveWrongTries(tx: Tx, digest: string, instants: Date[]): Promise<void> {
  await savedWrongTries(tx, { emailDigest: digest, wrongAt: instants });
}

const { network } = emailCodeTries;
const emailAndNetwork = { emailDigest: emailCodeTries.emailDigest, network };
type EmailAndNetwork = ValuesOf<typeof emailAndNetwork>;

const triesOfAddress = prepared(emailAndNetwork, (db, given) =>
  db
    .select({ wrongAt: emailCodeTries.wrongAt })
    .from(emailCodeTries)
    .where(and(eq(emailAndNetwork.emailDigest, given.emailDigest), eq(network, given.network))),
);

/**
 * Reads the instants of wrong codes for an email from one network. The caller must hold the lock on the email's code
 * counters; the same goes for `saveWrongTriesFrom`.
 */
export async function findWrongTriesFrom(tx: Tx, key: EmailAndNetwork): Promise<readonly Date[]> {
  const [row] = await triesOfAddress(tx, key);
  return row?.wrongAt ?? [];
}

const savedTriesOfAddress = prepared(getTableColumns(emailCodeTries), (db, given) =>
  db
    .insert(emailCodeTries)
    .values(given)
    .onConflictDoUpdate({
      target: [emailAndNetwork.emailDigest, network],
      set: { wrongAt: given.wrongAt, touchedAt: given.touchedAt },
    }),
);

export async function saveWrongTriesFrom(
  tx: Tx,
  key: EmailAndNetwork,
  { wrongAt: instants, now }: { wrongAt: Date[]; now: Date },
): Promise<void> {
  await savedTriesOfAddress(tx, { ...key, wrongAt: instants, touchedAt: now });
}

const { tries, consumedAt, ...issued } = getTableColumns(emailCodes);
const purpose = { emailDigest: issued.emailDigest, type: issued.type };

const isOfPurpose = (given: Readonly<Record<keyof typeof purpose, SQL>>) =>
  and(eq(purpose.emailDigest, given.emailDigest), eq(purpose.type, given.type));

export type CodeRow = Omit<typeof emailCodes.$inferSelect, keyof typeof purpose>;

const codesOfPurpose = prepared(purpose, (db, given) =>
  db.select().from(emailCodes).where(isOfPurpose(given)),
);

export async function findCode(
  db: DbOrTx,
  digest: string,
  type: CodeType,
): Promise<CodeRow | undefined> {
  const [row] = await codesOfPurpose(db, { emailDigest: digest, type });
  return row;
}

const savedCodes = prepared(issued, (db, given) => {
  const { userId, codeMac, issuedAt: at, expiresAt } = given;
  const fresh = { userId, codeMac, tries: 0, issuedAt: at, expiresAt, consumedAt: null };
  return db
    .insert(emailCodes)
    .values({ ...given, ...fresh })
    .onConflictDoUpdate({ target: [purpose.emailDigest, purpose.type], set: fresh });
});

/** Stores a code in place of the last code for the same email and purpose, which stops working. */
export async function saveCode(tx: Tx, code: ValuesOf<typeof issued>): Promise<void> {
  await savedCodes(tx, code);
}

const countedTries = prepared(purpose, (db, given) =>
  db
    .update(emailCodes)
    .set({ tries: sql`${tries} + 1` })
    .where(isOfPurpose(given)),
);

export async function countTry(tx: Tx, digest: string, type: CodeType): Promise<void> {
  await countedTries(tx, { emailDigest: digest, type });
}

const consumedCodes = prepared({ ...purpose, consumedAt }, (db, given) =>
  db.update(emailCodes).set({ consumedAt: given.consumedAt }).where(isOfPurpose(given)),
);

export async function consumeCode(
  tx: Tx,
  { digest, type, now }: { digest: string; type: CodeType; now: Date },
): Promise<void> {
  await consumedCodes(tx, { emailDigest: digest, type, consumedAt: now });
}

const savepoint = (name: string, text: string) =>
  statement({
    name,
    // Drizzle's query builder has no savepoint commands. Both ways to end the savepoint are declared alike, because
    // the response time must not reveal which of them ran.
    text: () => sql.raw(text),
  });
const trialBegins = savepoint("openTrial", "savepoint trial");
const trialIsKept = savepoint("keepTrial", "release savepoint trial");
const trialIsUndone = savepoint("undoTrial", "rollback to savepoint trial");

/** Sets a savepoint, so that the statements after it can be rolled back without the rest of the transaction. */
export async function openTrial(tx: Tx): Promise<void> {
  await tx.run(trialBegins, {});
}

export async function keepTrial(tx: Tx): Promise<void> {
  await tx.run(trialIsKept, {});
}

export async function undoTrial(tx: Tx): Promise<void> {
  await tx.run(trialIsUndone, {});
}
