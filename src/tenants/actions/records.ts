import { referringTable, violatedIndex } from "../../../db/errors.ts";
import type { Tx } from "../../../db/client.ts";
import type { AuditAction } from "../../audit/model.ts";
import { changeDetails } from "../../audit/changes.ts";
import { recordAudit } from "../../audit/queries.ts";
import { creating } from "../../auth/keyed-requests.ts";
import type { Caller } from "../../http/principal.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import { lockRecord, type RecordKey } from "../queries/records.ts";
import { type AdminDeps, orNotFound } from "./deps.ts";

/** The field errors for violations of unique indexes, by the name of the index. */
type Conflicts = Readonly<Record<string, readonly [field: string, message: string]>>;

const EXTERNAL_ID_INDEX = /_external_id$/;
const EXTERNAL_ID_TAKEN = "is the external id of another record of this kind";

/** Returns whether an error of `changeRecord` means that another record of the same kind has the external id. */
export const isExternalIdTaken = (error: unknown): boolean =>
  error instanceof Problem && error.errors?.["external_id"]?.includes(EXTERNAL_ID_TAKEN) === true;

interface Change {
  readonly action: AuditAction;
  readonly details: Readonly<Record<string, unknown>>;
}

/**
 * Runs `work` in a transaction and records the change that it returns, if any, in the audit log. If a unique index
 * rejects the later of two concurrent requests, the function throws the 422 that the validation of that request would
 * have given.
 */
export async function changeRecord<T>(
  { db, clock }: Pick<AdminDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  conflicts: Conflicts,
  work: (tx: Tx, now: Date) => Promise<{ readonly result: T; readonly change?: Change }>,
): Promise<T> {
  const now = clock.now();
  try {
    return await creating(db, { requestContext }, async (tx) => {
      const { result, change } = await work(tx, now);
      if (change !== undefined)
        await recordAudit(tx, { at: now, actor: principal, requestContext, ...change });
      return result;
    });
  } catch (error) {
    const index = violatedIndex(error);
    if (index === undefined) throw error;
    const external = EXTERNAL_ID_INDEX.test(index)
      ? (["external_id", EXTERNAL_ID_TAKEN] as const)
      : undefined;
    const conflict = conflicts[index] ?? external;
    if (conflict === undefined) throw error;
    const [field, message] = conflict;
    throw invalid({ [field]: [message] });
  }
}

interface RecordUpdate<T> {
  readonly record: RecordKey;
  readonly conflicts: Conflicts;
  readonly action: AuditAction;
  /** The details that identify the record. */
  readonly ids: Readonly<Record<string, unknown>>;
  readonly read: (tx: Tx) => Promise<T | undefined>;
  readonly write: (tx: Tx) => Promise<void>;
}

/**
 * Changes the fields of a record that the body names, and records the changed ones in the audit log with their old and
 * new values. An update that changes nothing is not recorded.
 */
export function updateRecord<T extends object>(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  body: object,
  { record, conflicts, action, ids, read, write }: RecordUpdate<T>,
): Promise<T> {
  const named = Object.keys(body);
  return changeRecord(deps, caller, conflicts, async (tx) => {
    await lockRecord(tx, record);
    const before = orNotFound(await read(tx));
    if (named.length === 0) return { result: before };
    await write(tx);
    const result = orNotFound(await read(tx));
    const details = { ...ids, ...changeDetails(named, before, result) };
    return { result, ...(details.fields.length > 0 && { change: { action, details } }) };
  });
}

/** The words of the error `in_use` for the tables whose rows can refer to a record and so prevent its deletion. */
const CONTENTS_OF_TABLE: Readonly<Record<string, string>> = {
  companies: "accounts",
  stores: "stores",
  users: "users",
  user_stores: "location users",
  store_review_sites: "connections to review sites",
  webhook_subscriptions: "webhook subscriptions",
  oauth_clients: "OAuth clients",
  sso_connections: "SSO connections",
  audit_log: "entries of the audit log",
  review_history: "reported events",
  company_deletions: "a scheduled deletion",
};

function inUse(table: string): Problem {
  const contents = CONTENTS_OF_TABLE[table] ?? table.replaceAll("_", " ");
  return new Problem("in_use", {
    message: `The record cannot be deleted, because it has ${contents}.`,
  });
}

/**
 * Deletes a record, and writes the deletion into the audit log. Throws `in_use` if a row of another table refers to the
 * record.
 */
export async function deleteRecord(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  change: Change,
  remove: (tx: Tx) => Promise<void>,
): Promise<void> {
  try {
    await changeRecord(deps, caller, {}, async (tx) => {
      await remove(tx);
      return { result: undefined, change };
    });
  } catch (error) {
    const table = referringTable(error);
    throw table === undefined ? error : inUse(table);
  }
}
