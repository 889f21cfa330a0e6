// A lock that the kernel lets go of when its holder dies, however it dies: SQLite's own lock on an
// empty database file. A pid in a file would need guessing whether that pid is still the same program.
import { Database, SQLiteError } from "bun:sqlite";

// A database that nothing refers to is collected, and its lock is gone with it.
const held = new Set<Database>();

/** Takes the lock at once and returns its release, or undefined if another process holds it. */
export function takeLock(path: string): (() => void) | undefined {
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
