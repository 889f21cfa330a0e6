/**
 * Why a commit failed. `waits`: somebody has held its rows for too long. `store`: Postgres is out of reach, full or being
 * changed, whatever the records are. `records`: it will not take these.
 */
export type CommitFailure = "waits" | "store" | "records";

/** lock_timeout, and a statement that was cancelled, as by statement_timeout. */
const WAITS = new Set(["55P03", "57014"]);
/**
 * Classes of SQLSTATE that are not about what is written: connection, transaction (a server that is read-only after a
 * failover), access, deadlock, columns that are missing in the middle of an upgrade, resources, operator, system.
 */
const STORE_CLASSES = new Set(["08", "25", "28", "40", "42", "53", "55", "57", "58"]);
/** No class begins with E, as the codes of sockets do. */
const SQLSTATE = /^[0-9A-DF-Z][0-9A-Z]{4}$/;

/** An error without any code is none of Postgres or of the connection: the statement could not be put together. */
export function commitFailureOf(error: unknown): CommitFailure {
  const code: unknown = error instanceof Error ? Reflect.get(error, "code") : undefined;
  if (typeof code !== "string") return "records";
  if (!SQLSTATE.test(code)) return "store";
  if (WAITS.has(code)) return "waits";
  return STORE_CLASSES.has(code.slice(0, 2)) ? "store" : "records";
}
