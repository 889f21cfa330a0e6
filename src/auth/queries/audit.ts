import { and, desc, eq, getTableColumns, gte, lt, or } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { anyOf, idBefore } from "../../../db/conditions.ts";
import { prepared } from "../../../db/session.ts";
import { auditLog, companies, users } from "../../../db/schema/companies.ts";
import type { Page } from "../../http/list.ts";
import type { StoredAuditRow } from "../audit-model.ts";

const { id, ...columns } = getTableColumns(auditLog);
const insertion = prepared(columns, (db, given) => db.insert(auditLog).values(given));

export async function insertAuditRow(
  tx: DbOrTx,
  row: Omit<typeof auditLog.$inferSelect, "id">,
): Promise<void> {
  await insertion(tx, row);
}

export interface AuditFilter {
  readonly action: string | undefined;
  readonly actorId: number | undefined;
  readonly companyId: number | undefined;
  readonly since: Date | undefined;
  readonly until: Date | undefined;
}

function conditionsOf({ action, actorId, companyId, since, until }: AuditFilter, page: Page) {
  return and(
    action === undefined ? undefined : eq(auditLog.action, action),
    actorId === undefined ? undefined : eq(auditLog.actorId, actorId),
    companyId === undefined ? undefined : eq(auditLog.companyId, companyId),
    since && gte(auditLog.at, since),
    until && lt(auditLog.at, until),
    idBefore(id, page.after),
  );
}

/** Lists rows by descending id, which is the reverse order of writing. */
export function auditRows(db: DbOrTx, filter: AuditFilter, page: Page): Promise<StoredAuditRow[]> {
  return db
    .select()
    .from(auditLog)
    .where(conditionsOf(filter, page))
    .orderBy(desc(id))
    .limit(page.limit + 1);
}

/**
 * Lists the rows of a partner and its accounts, newest first. The query takes the newest rows of each company from
 * the index on the company and merges them, so it reads no row of another tenant.
 */
export async function auditRowsOfTenant(
  db: DbOrTx,
  partnerId: number,
  filter: AuditFilter,
  page: Page,
): Promise<StoredAuditRow[]> {
  const own = db
    .select()
    .from(auditLog)
    .where(and(eq(auditLog.companyId, companies.id), conditionsOf(filter, page)))
    .orderBy(desc(id))
    .limit(page.limit + 1)
    .as("own");
  const found = await db
    .select()
    .from(companies)
    .crossJoinLateral(own)
    .where(or(eq(companies.id, partnerId), eq(companies.partnerId, partnerId)))
    .orderBy(desc(own.id))
    .limit(page.limit + 1);
  return found.map((row) => row.own);
}

type Ids = readonly (number | null)[];
type Names = Promise<ReadonlyMap<number | null, string>>;

export const namesOfUsers = (db: DbOrTx, ids: Ids): Names => namesIn(db, users, ids);
export const namesOfCompanies = (db: DbOrTx, ids: Ids): Names => namesIn(db, companies, ids);

async function namesIn(db: DbOrTx, table: typeof users | typeof companies, ids: Ids): Names {
  const known = new Set(ids.filter((one) => one !== null));
  if (known.size === 0) return new Map();
  const found = await db
    .select({ id: table.id, name: table.name })
    .from(table)
    .where(anyOf(table.id, known));
  return new Map(found.map((one) => [one.id, one.name]));
}
