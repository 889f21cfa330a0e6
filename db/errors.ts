/** SQLSTATE of a broken unique index. */
const UNIQUE_VIOLATION = "23505";

/** Whether a statement failed because this unique index already holds the key. */
export function violatesUnique(error: unknown, index: string): boolean {
  // The query builder wraps the driver's error.
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return false;
  return (
    Reflect.get(cause, "code") === UNIQUE_VIOLATION &&
    Reflect.get(cause, "constraint_name") === index
  );
}
