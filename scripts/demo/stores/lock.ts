// A lock that the kernel releases when its holder dies for any reason. It is SQLite's lock on an empty database file. A
// pid file would not be reliable, because the pid may belong to another program later.
import { Database, SQLiteError } from "bun:sqlite";

// Keeps references to the databases: a garbage-collected one would release its lock.
const held = new Set<Database>();

/** Takes the lock without waiting. Returns the function that releases it, or undefined if another process holds it. */
export function acquireLock(path: string): (() => void) | undefined {
  const database = new Database(path, { create: true });
  try {
    database.run("PRAGMA busy_timeout = 0");
    database.run("BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (error instanceof SQLiteError && error.code === "SQLITE_BUSY") return undefined;
    throw error;
  }
  held.add(database);
  return () => {
    held.delete(database);
    database.close();
  };
}
