/** SQLSTATE of a broken unique index. */
const UNIQUE_VIOLATION = "23505";

/** SQLSTATE of the victim of a deadlock. */
const DEADLOCK_DETECTED = "40P01";

/** SQLSTATE of a statement that waited longer than lock_timeout. */
const LOCK_NOT_AVAILABLE = "55P03";

export function isLockTimeout(error: unknown): boolean {
  return fieldOf(error, "code") === LOCK_NOT_AVAILABLE;
}

export function isDeadlock(error: unknown): boolean {
  return fieldOf(error, "code") === DEADLOCK_DETECTED;
}

/** Whether a statement failed because this unique index already holds the key. */
export function violatesUnique(error: unknown, index: string): boolean {
  return fieldOf(error, "code") === UNIQUE_VIOLATION && fieldOf(error, "constraint_name") === index;
}

function fieldOf(error: unknown, name: string): unknown {
  return error instanceof Error ? Reflect.get(error, name) : undefined;
}
