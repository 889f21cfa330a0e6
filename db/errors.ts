import { DrizzleQueryError } from "drizzle-orm";

/** Whether an error has the SQLSTATE of a unique violation. */
export const isUniqueViolation = hasCode("23505");

/** Whether an error has the SQLSTATE of a transaction that was rolled back because of a deadlock. */
export const isDeadlock = hasCode("40P01");

/** Whether an error has the SQLSTATE of a statement that waited for a lock longer than `lock_timeout`. */
export const isLockTimeout = hasCode("55P03");

const isCancelled = hasCode("57014");
const isOutOfMemory = hasCode("53200");
const isLate = hasCode("DEADLINE_EXCEEDED");
/** Whether a statement took longer or more memory than it may, so that one with less content may succeed. */
export const isTooMuch = (error: unknown): boolean =>
  isCancelled(error) || isOutOfMemory(error) || isLate(error);

/** Whether an error has the SQLSTATE of a violated check. */
export const isCheckViolation = hasCode("23514");

/** Whether an error has the SQLSTATE of a missing privilege. */
export const isForbidden = hasCode("42501");

/** Whether a table, a function or another object of this name exists already. */
export const isTaken = (error: unknown): boolean =>
  hasCode("42P07")(error) || hasCode("42723")(error) || hasCode("42710")(error);

/** Returns an error message with the setting that a command needs, if a statement failed for a missing privilege. */
export function rightsFault(error: unknown): string | undefined {
  if (!isForbidden(error)) return undefined;
  return `${String(fieldOf(error, "message"))}: name the user that owns the tables in MAINTENANCE_DATABASE_URL (docs/operations/production.md, "With two users").`;
}

/** Code of the driver's patch: the session lost this prepared statement, or its result type has changed. */
const STATEMENT_OUTDATED = "STATEMENT_OUTDATED";
export const isStatementOutdated = hasCode(STATEMENT_OUTDATED);

/**
 * The SQLSTATEs of a server that is unavailable (PostgreSQL, appendix A): connection failure, rejected role or
 * database, conflict of transactions, resources (disk full, too many connections), shutdown and cancellation, system
 * error. Also a lock timeout, a read-only server, and a transaction that was idle for too long.
 */
const STORE_STATES = /^((08|28|40|53|57|58)[0-9A-Z]{3}|3D000|55P03|25006|25P03|25P04)$/;

/** Codes of errors of the driver and of its socket that are failures of the database or of the connection to it. */
const STORE_CODES = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "CONNECT_TIMEOUT",
  "DEADLINE_EXCEEDED",
  "NO_CONNECTION",
  "NO_SUCH_HOST",
  "OUTCOME_UNKNOWN",
  "POOLER_FOUND",
  STATEMENT_OUTDATED,
  "EAI_AGAIN",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
]);

/**
 * Whether a statement failed because of the database and not because of its content, so that it may succeed later.
 * Nothing was committed, unless the error is an `OutcomeUnknown`.
 */
export function isStoreFailure(error: unknown): boolean {
  const code = fieldOf(error, "code");
  return typeof code === "string" && (STORE_CODES.has(code) || STORE_STATES.test(code));
}

/** The answer to a commit, or to a statement that commits by itself, was lost: it may have been carried out. */
class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
  readonly code = "OUTCOME_UNKNOWN";
}

/** Whether a failure of the database hides whether something was committed. */
export const isOutcomeUnknown = hasCode("OUTCOME_UNKNOWN");

/**
 * Returns the error of a commit, or of a statement that commits by itself, after it was sent. An error of the server's
 * severity ERROR has undone it. Any other failure of the database hides its outcome: the connection ended, the answer is
 * overdue, the server ended the session, or a pooler reports that it has lost the server (SQLSTATE 08).
 */
export function afterCommitSent(error: unknown): unknown {
  const isLost = String(fieldOf(error, "code")).startsWith("08");
  const isUndone =
    (fieldOf(error, "severity") === "ERROR" && !isLost) || isStatementOutdated(error);
  if (isUndone || !isStoreFailure(error)) return error;
  const message = `The answer to a commit was lost: ${String(fieldOf(error, "message"))}`;
  return new OutcomeUnknown(message, { cause: causeOf(error) });
}

/**
 * Whether an error says that a pooler was detected behind an address that does not announce a pooler with
 * `prepare=false`.
 */
export function isPoolerFound(error: unknown): boolean {
  if (fieldOf(error, "code") === "POOLER_FOUND") return true;
  // PgBouncer rejects most settings in the startup message of a session.
  return String(fieldOf(error, "message")).startsWith("unsupported startup parameter");
}

/** Whether the session of a statement was ended before its answer, by the server or by a pooler. */
export const isEnded = (error: unknown): boolean =>
  hasCode("CONNECTION_CLOSED")(error) || hasCode("57P01")(error);

/** Returns the name of the unique index that already contains the key of a statement; undefined for any other error. */
export function violatedIndex(error: unknown): string | undefined {
  return isUniqueViolation(error) ? String(fieldOf(error, "constraint_name")) : undefined;
}

/** Whether a statement refers to a row that does not exist, or deletes a row to which others refer. */
export const isReferenceViolation = hasCode("23503");

/** Returns the table whose rows refer to a row that a statement tried to delete; undefined for any other error. */
export function referringTable(error: unknown): string | undefined {
  const table = isReferenceViolation(error) ? fieldOf(error, "table_name") : undefined;
  return typeof table === "string" ? table : undefined;
}

function hasCode(code: string): (error: unknown) => boolean {
  return (error) => fieldOf(error, "code") === code;
}

function fieldOf(error: unknown, name: string): unknown {
  const cause = causeOf(error);
  return cause instanceof Error ? Reflect.get(cause, name) : undefined;
}

/** Returns the driver's error for one of Drizzle, whose message contains the values of the parameters. */
export function causeOf(error: unknown): unknown {
  return error instanceof DrizzleQueryError ? error.cause : error;
}
