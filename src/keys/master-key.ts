import { and, eq, getTableName, like, min, not, sql } from "drizzle-orm";
import { hostname } from "node:os";

import type { Db } from "../../db/client.ts";
import { processes } from "../../db/schema/dispatchers.ts";
import type { Clock } from "../lib/clock.ts";
import { EXIT_CONFIG } from "../lib/config.ts";
import { errorFields, type Log } from "../lib/log.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import { SEALED_COLUMNS, type SealedColumn } from "./sealed-columns.ts";

export const MASTER_KEY_REMEDY =
  "Set MASTER_KEY (or MASTER_KEY_FILE) to the key of this database; while it changes, the old one as MASTER_KEY_PREVIOUS.";

/** How often a process renews its row, and looks for stored values that it cannot open. */
const GAP_MS = 5_000;
/** A look reads every sealed column. In a large database it comes less often, so that it takes a 50th of the time. */
const LOOK_SHARE = 50;
/** A process that did not renew its row for so long has ended. */
const EXPIRY_S = 60;
/** A process that stops does not wait longer for a database that does not answer. */
const CLOSE_MS = 1_000;

const NOW = sql`now()`;
const isRunning = sql`${processes.seenAt} > now() - make_interval(secs => ${EXPIRY_S})`;

interface WatchDeps {
  readonly db: Db;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly log: Log;
  readonly role: "api" | "dispatcher";
}

/**
 * Publishes which master keys this process has, for `rotate-master`, and watches that they open what is stored. While
 * they do not, the process is not ready: it can verify no provider, sign no delivery and show no secret.
 */
export class MasterKeyWatch {
  readonly #deps: WatchDeps;
  readonly #id = crypto.randomUUID();
  readonly #closing = new AbortController();
  #publishing: Promise<void> = Promise.resolve();
  #fieldError: string | undefined;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
  }

  /**
   * Ends the process if its keys do not open what is stored; starting it again cannot help. It publishes them first, so
   * that a `rotate-master` that runs at the same time sees this process or is seen by it. May be called again after an
   * error.
   */
  async begin(): Promise<void> {
    const { db, box } = this.#deps;
    await this.#publish();
    const fieldError = await masterKeyError(db, box);
    if (fieldError === undefined) return;
    await this.close();
    console.error(`${fieldError} ${MASTER_KEY_REMEDY}`);
    process.exit(EXIT_CONFIG);
  }

  /** Goes on until `close`. */
  run(): void {
    this.#publishing = this.#repeat(0, () => this.#publish());
    void this.#repeat(LOOK_SHARE, () => this.#look());
  }

  /** Rejects while a stored value was sealed with a key that this process does not have. */
  async check(): Promise<void> {
    if (this.#fieldError !== undefined) throw new Error(this.#fieldError);
  }

  /** Takes back what was published. */
  async close(): Promise<void> {
    const { db, clock, log } = this.#deps;
    this.#closing.abort();
    const removed = this.#publishing
      .then(() => db.delete(processes).where(eq(processes.id, this.#id)))
      .catch((error: unknown) => log.warn("master_key.unwatched", errorFields(error)));
    await Promise.race([removed, clock.sleep(CLOSE_MS)]);
  }

  async #publish(): Promise<void> {
    const { db, box, role } = this.#deps;
    const masterKeys = [...box.keyIds];
    await db
      .insert(processes)
      .values({ id: this.#id, role, host: hostname(), pid: process.pid, masterKeys, seenAt: NOW })
      .onConflictDoUpdate({ target: processes.id, set: { seenAt: NOW } });
    await db.delete(processes).where(not(isRunning));
  }

  async #look(): Promise<void> {
    const { db, box, log } = this.#deps;
    const fieldError = await masterKeyError(db, box);
    if (fieldError !== undefined && fieldError !== this.#fieldError)
      log.error("master_key.missing", { fieldError });
    if (fieldError === undefined && this.#fieldError !== undefined) log.info("master_key.found");
    this.#fieldError = fieldError;
  }

  async #repeat(share: number, work: () => Promise<void>): Promise<void> {
    const { clock, log } = this.#deps;
    const { signal } = this.#closing;
    for (let tookMs = 0; ;) {
      await clock.sleep(Math.max(GAP_MS, tookMs * share), signal);
      if (signal.aborted) return;
      const beganMs = clock.monotonicMs();
      await work().catch((error: unknown) => log.warn("master_key.unwatched", errorFields(error)));
      tookMs = clock.monotonicMs() - beganMs;
    }
  }
}

/** Reads which APIs and dispatchers run, each with the ids of its master keys; the first one seals. */
export function runningProcesses(db: Db) {
  const { role, host, pid, masterKeys, seenAt } = processes;
  const ageS = sql`extract(epoch from now() - ${seenAt})::int`.mapWith(Number);
  return db
    .select({ role, host, pid, masterKeys, ageS })
    .from(processes)
    .where(isRunning)
    .orderBy(role, host, pid);
}

export type RunningProcess = Awaited<ReturnType<typeof runningProcesses>>[number];

/** One line that says which key is missing; nothing if the keys at hand seal all that is stored. */
export async function masterKeyError(db: Db, box: SecretBox): Promise<string | undefined> {
  for (const column of SEALED_COLUMNS) {
    const samples = await sampleOfEachKey(db, column);
    const unknown = samples.find((sealed) => !box.isKnown(sealed));
    if (unknown === undefined) continue;
    const [, keyId] = unknown.split(".");
    return (
      `The master key is wrong: ${getTableName(column.sealed.table)}.${column.sealed.name} holds values sealed with key ${keyId}, ` +
      "which is neither MASTER_KEY nor MASTER_KEY_PREVIOUS."
    );
  }
  return undefined;
}

async function sampleOfEachKey(db: Db, { sealed, where }: SealedColumn): Promise<string[]> {
  const rows = await db
    .select({ sample: min(sealed) })
    .from(sealed.table)
    .where(and(like(sealed, "v1.%"), where))
    .groupBy(sql`split_part(${sealed}, '.', 2)`);
  return rows.flatMap(({ sample }) => (typeof sample === "string" ? [sample] : []));
}
