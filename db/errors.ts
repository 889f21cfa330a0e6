import { DrizzleQueryError } from "drizzle-orm";

/** Returns whether the error has the SQLSTATE of a unique violation. */
export const isUniqueViolation = hasCode("23505");

/** Returns whether the error has the SQLSTATE of a deadlock, which rolls the transaction back. */
export const isDeadlock = hasCode("40P01");

/** Returns whether the error has the SQLSTATE of a statement that waited for a lock longer than `lock_timeout`. */
export const isLockTimeout = hasCode("55P03");

const isCancelled = hasCode("57014");
const isOutOfMemory = hasCode("53200");
const isLate = hasCode("DEADLINE_EXCEEDED");
/**
 * Returns whether a statement exceeded its limit of time or memory, so that a statement with less content may succeed.
 */
export const isTooMuch = (error: unknown): boolean =>
  isCancelled(error) || isOutOfMemory(error) || isLate(error);

/** Returns whether the error has the SQLSTATE of a violated check constraint. */
export const isCheckViolation = hasCode("23514");

/** Returns whether the error has the SQLSTATE of a missing privilege. */
export const isForbidden = hasCode("42501");

/** Returns whether the error means that a table, a function or another object with this name already exists. */
export const isTaken = (error: unknown): boolean =>
  hasCode("42P07")(error) || hasCode("42723")(error) || hasCode("42710")(error);

/** Returns an error message with the required setting if a statement failed because of a missing privilege. */
export function rightsFault(error: unknown): string | undefined {
  if (!isForbidden(error)) return undefined;
  return `${String(fieldOf(error, "message"))}: set MAINTENANCE_DATABASE_URL to the user that owns the tables (docs/operations/production.md, "With two users").`;
}

/**
 * Error code of the driver's patch: the session has lost this prepared statement, or the type of its result has
 * changed.
 */
const STATEMENT_OUTDATED = "STATEMENT_OUTDATED";
export const isStatementOutdated = hasCode(STATEMENT_OUTDATED);

/**
 * The SQLSTATEs of a database that is unavailable (PostgreSQL, appendix A): connection failure, rejected role or
 * database, transaction conflict, insufficient resources (disk full, too many connections), shutdown and cancellation,
 * system error. They also include a lock timeout, a read-only server, and a transaction that was idle for too long.
 */
const UNAVAILABLE_STATES = /^((08|28|40|53|57|58)[0-9A-Z]{3}|3D000|55P03|25006|25P03|25P04)$/;

/** Error codes of the driver and of its socket that mean a failure of the database or of the connection. */
const CONNECTION_CODES = new Set([
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
 * Returns whether a statement failed because of the database and not because of its content, so that it may succeed
 * later. Nothing was committed, unless the error is an `OutcomeUnknown`.
 */
export function isStoreFailure(error: unknown): boolean {
  const code = fieldOf(error, "code");
  return typeof code === "string" && (CONNECTION_CODES.has(code) || UNAVAILABLE_STATES.test(code));
}

/**
 * The response to a commit, or to a statement outside of a transaction, was lost. The statement may have been
 * committed.
 */
class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
  readonly code = "OUTCOME_UNKNOWN";
}

/** Returns whether the error leaves it unknown whether something was committed. */
export const isOutcomeUnknown = hasCode("OUTCOME_UNKNOWN");

/**
 * Converts the error of a commit, or of a statement outside of a transaction, that was already sent. A server error of
 * severity ERROR means that nothing was committed. After any other failure of the database the result is unknown: the
 * connection ended, the response is overdue, the server ended the session, or a pooler reports that it has lost the
 * server (SQLSTATE 08).
 */
export function afterCommitSent(error: unknown): unknown {
  const isLost = String(fieldOf(error, "code")).startsWith("08");
  const isUndone =
    (fieldOf(error, "severity") === "ERROR" && !isLost) || isStatementOutdated(error);
  if (isUndone || !isStoreFailure(error)) return error;
  const message = `The response to a commit was lost: ${String(fieldOf(error, "message"))}`;
  return new OutcomeUnknown(message, { cause: causeOf(error) });
}

/**
 * Returns whether the error means that a pooler was detected although the database URL does not declare it with
 * `prepare=false`.
 */
export function isPoolerFound(error: unknown): boolean {
  if (fieldOf(error, "code") === "POOLER_FOUND") return true;
  // The error may also be that of PgBouncer, which rejects most settings in a startup message.
  return String(fieldOf(error, "message")).startsWith("unsupported startup parameter");
}

/** Returns whether the server or a pooler ended the session of a statement before its response. */
export const isEnded = (error: unknown): boolean =>
  hasCode("CONNECTION_CLOSED")(error) || hasCode("57P01")(error);

/**
 * Returns the name of the unique index that already contains the key of the statement; undefined for any other error.
 */
export function violatedIndex(error: unknown): string | undefined {
  return isUniqueViolation(error) ? String(fieldOf(error, "constraint_name")) : undefined;
}

/** Returns whether a statement refers to a row that does not exist, or deletes a row to which other rows refer. */
export const isReferenceViolation = hasCode("23503");

/**
 * Returns the table with rows that refer to the row that a statement tried to delete; undefined for any other error.
 */
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

/**
 * Returns the driver's error inside of Drizzle's error, because the message of Drizzle's error contains the values of
 * parameters.
 */
export function causeOf(error: unknown): unknown {
  return error instanceof DrizzleQueryError ? error.cause : error;
}
