// A lock that the kernel releases when its holder dies for any reason: SQLite's lock on an empty database file. With
// a pid file one would have to guess whether the pid still belongs to the same program.
import { Database, SQLiteError } from "bun:sqlite";

// Keeps the databases referenced: a collected one would release its lock.
const held = new Set<Database>();

/** Takes the lock without waiting and returns its release, or undefined if another process holds it. */
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
