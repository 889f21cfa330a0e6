import { hostname } from "node:os";
import { and, eq, getTableName, like, min, not, sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

import type { Db } from "../db/client.ts";
import { alertSettings, mails } from "../db/schema/alerts.ts";
import { processes } from "../db/schema/dispatchers.ts";
import { reviewSites } from "../db/schema/providers.ts";
import { ssoConnections } from "../db/schema/sign-in.ts";
import { signingKeys, tokens } from "../db/schema/tokens.ts";
import { webhookSubscriptions } from "../db/schema/webhooks.ts";
import type { Clock } from "./lib/clock.ts";
import { EXIT_CONFIG } from "./lib/config.ts";
import { errorFields, type Log } from "./lib/log.ts";
import type { SecretBox } from "./lib/secret-box.ts";

/** A column with values that are sealed with the master key. */
export interface SealedColumn {
  readonly sealed: PgColumn;
  /** The first part of the associated data. The row's values in `owner`, if any, and in `key` follow it. */
  readonly word: string;
  readonly owner?: PgColumn;
  /** A unique text column. */
  readonly key: PgColumn;
  /** A condition that every row with a value meets; with it the check can use a partial index. */
  readonly where?: SQL;
}

/** Lists the columns that are part of the associated data. */
export function boundBy({ owner, key }: SealedColumn): PgColumn[] {
  return owner === undefined ? [key] : [owner, key];
}

/** Returns the associated data with which a value of this row was sealed. */
export function associatedDataOf(
  column: SealedColumn,
  row: Readonly<Record<string, unknown>>,
): string {
  return [column.word, ...boundBy(column).map(({ name }) => String(row[name]))].join(":");
}

/**
 * Returns the associated data of a webhook secret. Copied to another subscription or tenant, the secret cannot be
 * opened (contract 6.6).
 */
export function webhookSecretAssociatedData(partnerId: number, subscriptionId: string): string {
  return `webhook:${partnerId}:${subscriptionId}`;
}

const webhookSecret = {
  word: "webhook",
  owner: webhookSubscriptions.partnerId,
  key: webhookSubscriptions.id,
};

/**
 * Every sealed column of the schema, with the associated data that the sealing code uses. A test compares the list
 * with the schema and opens a value of each column.
 */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { sealed: webhookSubscriptions.sealedSecret, ...webhookSecret },
  { sealed: webhookSubscriptions.sealedPreviousSecret, ...webhookSecret },
  { sealed: reviewSites.sealedSecret, word: "provider", key: reviewSites.slug },
  { sealed: signingKeys.sealedPrivateKey, word: "signing-key", key: signingKeys.kid },
  {
    sealed: tokens.sealedToken,
    word: "api-token",
    owner: tokens.userId,
    key: tokens.jti,
    where: sql`${tokens.kind} = 'dashboard_pat'`,
  },
  {
    sealed: ssoConnections.sealedClientSecret,
    word: "sso",
    owner: ssoConnections.companyId,
    key: ssoConnections.id,
  },
  {
    sealed: alertSettings.sealedSecret,
    word: "alerts",
    owner: alertSettings.partnerId,
    key: alertSettings.id,
  },
  {
    sealed: mails.sealedMessage,
    word: "mail",
    key: mails.id,
    where: sql`${mails.state} = 'queued'`,
  },
];

export const MASTER_KEY_REMEDY =
  "Set MASTER_KEY (or MASTER_KEY_FILE) to the key of this database; while it changes, the old one as MASTER_KEY_PREVIOUS.";

/** How often a process renews its row, and the shortest pause between two checks of the sealed columns. */
const INTERVAL_MS = 5_000;
/**
 * A check reads every sealed column. The pause after it is this many times its duration, so that it takes 2 % of the
 * time.
 */
const CHECK_PAUSES = 50;
/** A process that has not renewed its row for this long is considered ended. */
const EXPIRY_S = 60;
/** The longest wait for the database when a process stops. */
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
 * Publishes the ids of this process' master keys for `rotate-master`, and checks that they open all stored values.
 * While they do not, the process is not ready: it cannot verify providers, sign deliveries or show secrets.
 */
export class MasterKeyWatch {
  readonly #deps: WatchDeps;
  readonly #id = crypto.randomUUID();
  readonly #closing = new AbortController();
  #publishing: Promise<void> = Promise.resolve();
  #keyError: string | undefined;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
  }

  /**
   * Ends the process if its keys do not open the stored values, because a restart cannot help. It publishes them
   * first, so that this process and a `rotate-master` that runs at the same time cannot miss each other. May be called
   * again after an error.
   */
  async begin(): Promise<void> {
    const { db, box } = this.#deps;
    await this.#publish();
    const keyError = await masterKeyError(db, box);
    if (keyError === undefined) return;
    await this.close();
    console.error(`${keyError} ${MASTER_KEY_REMEDY}`);
    process.exit(EXIT_CONFIG);
  }

  /** Renews the row and repeats the check until `close`. */
  run(): void {
    this.#publishing = this.#repeat(0, () => this.#publish());
    void this.#repeat(CHECK_PAUSES, () => this.#check());
  }

  /** Rejects while a stored value is sealed with a key that this process lacks. */
  async check(): Promise<void> {
    if (this.#keyError !== undefined) throw new Error(this.#keyError);
  }

  /** Removes this process' row. */
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

  async #check(): Promise<void> {
    const { db, box, log } = this.#deps;
    const keyError = await masterKeyError(db, box);
    if (keyError !== undefined && keyError !== this.#keyError)
      log.error("master_key.missing", { error: keyError });
    if (keyError === undefined && this.#keyError !== undefined) log.info("master_key.found");
    this.#keyError = keyError;
  }

  async #repeat(share: number, work: () => Promise<void>): Promise<void> {
    const { clock, log } = this.#deps;
    const { signal } = this.#closing;
    for (let tookMs = 0; ;) {
      await clock.sleep(Math.max(INTERVAL_MS, tookMs * share), signal);
      if (signal.aborted) return;
      const beganMs = clock.monotonicMs();
      await work().catch((error: unknown) => log.warn("master_key.unwatched", errorFields(error)));
      tookMs = clock.monotonicMs() - beganMs;
    }
  }
}

/** Lists the running APIs and dispatchers with the ids of their master keys. The first id is the sealing key. */
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

/** Names the missing key; undefined if the available keys open every sealed column. */
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
