/** SQLSTATE of a broken unique index. */
export const isUniqueViolation = hasCode("23505");

/** SQLSTATE of the victim of a deadlock. */
export const isDeadlock = hasCode("40P01");

/** SQLSTATE of a statement that waited longer than lock_timeout. */
export const isLockTimeout = hasCode("55P03");

/** SQLSTATE of a right that the user lacks. */
export const isForbidden = hasCode("42501");

/** Code of the driver's patch: the session no longer has this prepared statement, or its result type has changed. */
const STATEMENT_OUTDATED = "STATEMENT_OUTDATED";
export const isStatementOutdated = hasCode(STATEMENT_OUTDATED);

/**
 * SQLSTATEs of a server that cannot be had, by their beginnings (docs of PostgreSQL, appendix A): connection, rejected
 * role or database, conflict with another transaction, resources (disk full, too many connections), shutdown and
 * cancellation, its own trouble; besides a lock not had, a read-only server, a transaction left alone.
 */
const STORE_STATES = /^(08|28|3D000|40|53|57|58|55P03|25006|25P03|25P04)/;

/** Codes of the driver and of its socket. */
const STORE_CODES = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "CONNECT_TIMEOUT",
  "DEADLINE_EXCEEDED",
  "NO_CONNECTION",
  "NO_SUCH_HOST",
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

const SQLSTATE = /^[0-9A-Z]{5}$/;

/**
 * Whether a statement failed because of the database and not of what it says: it may work later. What was open is rolled
 * back; whether a commit whose answer was lost took place is unknown.
 */
export function isStoreFailure(error: unknown): boolean {
  const code = fieldOf(error, "code");
  if (typeof code !== "string") return false;
  if (STORE_CODES.has(code)) return true;
  return SQLSTATE.test(code) && STORE_STATES.test(code);
}

/** Whether a pooler was found behind an address that does not announce one with `prepare=false`. */
export function isPoolerFound(error: unknown): boolean {
  if (fieldOf(error, "code") === "POOLER_FOUND") return true;
  // PgBouncer takes few of the settings that a session may be started with.
  return error instanceof Error && error.message.startsWith("unsupported startup parameter");
}

/** Whether a statement failed because this unique index already holds the key. */
export function violatesUnique(error: unknown, index: string): boolean {
  return isUniqueViolation(error) && fieldOf(error, "constraint_name") === index;
}

function hasCode(code: string): (error: unknown) => boolean {
  return (error) => fieldOf(error, "code") === code;
}

function fieldOf(error: unknown, name: string): unknown {
  return error instanceof Error ? Reflect.get(error, name) : undefined;
}
