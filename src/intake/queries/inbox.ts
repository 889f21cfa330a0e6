import { and, eq, sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { anyOf, idAfter } from "../../../db/conditions.ts";
import { measuring } from "../../../db/measure.ts";
import { inbox } from "../../../db/schema/companies.ts";
import { tryLock } from "../../../db/server.ts";
import { onlyRow, statement, value } from "../../../db/statement.ts";
import { endingEarly, type Found, type Page } from "../../http/list.ts";
import type { InboxRow } from "../service-model.ts";
import { MAX_ACTION_BYTES } from "../sizes.ts";

/** Maximum number of partners with waiting actions that one read of the inbox returns. */
const PARTNERS_PER_READING = 1_000;

const nextPartner = (after: SQL) => sql`(select partner_id from inbox
                where state = 'waiting' and partner_id > ${after} order by partner_id limit 1)`;

const waitingPartners = statement({
  name: "inbox.partners",
  // Raw SQL, because the statement jumps from one partner to the next, however many actions each of them has.
  params: { limit: value("bigint") },
  columns: { id: inbox.partnerId },
  text: ({ limit }) => sql`
    with recursive found as (
      select ${nextPartner(sql`-1`)} as id
       union all
      select ${nextPartner(sql`found.id`)} from found where id is not null
    )
    select id from found where id is not null limit ${limit}`,
});

/** Returns the partners with waiting actions. */
export async function inboxPartners(db: DbOrTx): Promise<number[]> {
  const rows = await db.run(waitingPartners, { limit: PARTNERS_PER_READING });
  return rows.map((row) => row.id);
}

/** Locks the inbox of a partner until the commit. Returns false if another process is processing it. */
export const lockInbox = (tx: Tx, partnerId: number): Promise<boolean> =>
  tryLock(tx, "inboxOfPartner", partnerId);

const measureActions = measuring("inbox.measure", {
  id: inbox.position,
  bytes: sql`octet_length(${inbox.action}::text)`,
});

/**
 * Adds their actions to rows of the inbox, in the order of the rows. One statement may read only a limited size, so the
 * result may contain only the first rows. An action of more than `MAX_ACTION_BYTES` is not read; it was stored before
 * this limit existed.
 */
async function withActions<R extends { readonly position: number }>(
  db: DbOrTx,
  rows: readonly R[],
) {
  const measured = await measureActions(
    db,
    rows.map((one) => one.position),
  );
  const small = measured.flatMap(({ id: at, bytes }) =>
    at !== null && bytes !== null && bytes <= MAX_ACTION_BYTES ? [at] : [],
  );
  const { position: at, action: found } = inbox;
  const read = await db.select({ at, found }).from(inbox).where(anyOf(at, small));
  const actions = new Map(read.map((one) => [one.at, one.found]));
  return measured.flatMap(({ bytes }, i) => {
    const row = rows[i];
    // A row without a size was removed after `rows` were read, so it is omitted.
    if (row === undefined || bytes === null) return [];
    const isTooLarge = bytes > MAX_ACTION_BYTES;
    return [{ ...row, action: actions.get(row.position) ?? null, isTooLarge }];
  });
}

/** Reads and locks the next waiting actions of a partner, at most `limit`, in the order of their commits. */
export async function nextOfInbox(tx: Tx, partnerId: number, limit: number) {
  const rows = await tx
    .select({ position: inbox.position, serviceId: inbox.serviceId })
    .from(inbox)
    .where(and(eq(inbox.state, "waiting"), eq(inbox.partnerId, partnerId)))
    .orderBy(inbox.position)
    .limit(limit)
    .for("update");
  return withActions(tx, rows);
}

/** Returns the position of a partner's first waiting action without reading its content. */
export async function firstOfInbox(db: DbOrTx, partnerId: number): Promise<number | undefined> {
  const [row] = await db
    .select({ position: inbox.position })
    .from(inbox)
    .where(and(eq(inbox.state, "waiting"), eq(inbox.partnerId, partnerId)))
    .orderBy(inbox.position)
    .limit(1);
  return row?.position;
}

export async function deleteFromInbox(tx: DbOrTx, positions: readonly number[]): Promise<number> {
  if (positions.length === 0) return 0;
  return (await tx.delete(inbox).where(anyOf(inbox.position, positions))).count;
}

/** Sets the state of a waiting action to `rejected` and stores its errors, so that it does not block later actions. */
export async function rejectInInbox(
  tx: Tx,
  wanted: number,
  given: Readonly<Record<string, string>>,
): Promise<void> {
  const isWaiting = and(eq(inbox.position, wanted), eq(inbox.state, "waiting"));
  await tx.update(inbox).set({ state: "rejected", errors: given }).where(isWaiting);
}

const { position, serviceId, partnerId: ofPartner, state, errors, insertedAt } = inbox;

/**
 * Lists the actions of the inbox in a given state, oldest first. The page ends early if its actions are large; `end` is
 * then the position of its last row.
 */
export async function inboxOf(
  db: DbOrTx,
  wanted: InboxRow["state"],
  page: Page,
): Promise<Found<InboxRow>> {
  const all = await db
    .select({ position, serviceId, partnerId: ofPartner, state, errors, insertedAt })
    .from(inbox)
    .where(and(eq(state, wanted), idAfter(position, page.after)))
    .orderBy(position)
    .limit(page.limit + 1);
  const rows = await withActions(db, all);
  return endingEarly({ rows, isCut: rows.length < all.length }, (row) => String(row.position));
}

const countOf = (wanted: InboxRow["state"]) =>
  sql`(select count(*) from (select from ${inbox} where state = ${wanted} limit 10000) few)`.mapWith(
    Number,
  );

/** Counts the actions of the inbox, up to 10,000 of each state, and returns the time of the oldest waiting one. */
export async function inboxStatus(db: DbOrTx) {
  const counts = { waiting: countOf("waiting"), rejected: countOf("rejected") };
  const [first] = await db
    .select({ insertedAt })
    .from(inbox)
    .where(eq(state, "waiting"))
    .orderBy(position)
    .limit(1);
  const { waiting, rejected } = onlyRow(await db.select(counts).from(sql`(select 1) one`));
  return { waiting, rejected, oldestWaitingAt: first?.insertedAt ?? null };
}

/** Sets a rejected action back to waiting. Returns false if there is none at the position. */
export async function retryInInbox(tx: Tx, wanted: number): Promise<boolean> {
  const isRejected = and(eq(position, wanted), eq(state, "rejected"));
  return (
    (await tx.update(inbox).set({ state: "waiting", errors: null }).where(isRejected)).count > 0
  );
}

/** Deletes a waiting or rejected action. Returns its state; undefined if there is none at the position. */
export async function dropFromInbox(tx: Tx, wanted: number) {
  const [row] = await tx.delete(inbox).where(eq(position, wanted)).returning({ state });
  return row?.state;
}
