import { hostname } from "node:os";
import { and, eq, getTableName, like, min, not, sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

import type { Db } from "../db/client.ts";
import { alertSettings, mails } from "../db/schema/alerts.ts";
import { auditWebhooks } from "../db/schema/companies.ts";
import { processes } from "../db/schema/dispatchers.ts";
import { erasures } from "../db/schema/erasures.ts";
import { reviewSites } from "../db/schema/providers.ts";
import { keyedRequests, ssoConnections } from "../db/schema/sign-in.ts";
import { secondFactorChallenges, secondFactors } from "../db/schema/second-factors.ts";
import { signingKeys, tokens } from "../db/schema/tokens.ts";
import { webhookSubscriptions } from "../db/schema/webhooks.ts";
import type { Clock } from "./lib/clock.ts";
import { EXIT_CONFIG } from "./lib/config.ts";
import { errorFields, type Log } from "./lib/log.ts";
import type { SecretBox } from "./lib/secrets.ts";

/** A database column whose values are sealed with the master key. */
export interface SealedColumn {
  readonly sealed: PgColumn;
  /**
   * The first part of the associated data. The row's values of the columns `owner`, if there is one, and `key` follow
   * it.
   */
  readonly word: string;
  readonly owner?: PgColumn;
  /** A text column that is unique in the table. */
  readonly key: PgColumn;
  /** A condition that every row with a sealed value meets. With it, the check can use a partial index. */
  readonly where?: SQL;
}

/** Returns the columns whose values are part of the associated data. */
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
 * Returns the associated data of a webhook secret. A sealed secret that is copied to another subscription or tenant
 * cannot be opened (contract 6.6).
 */
export function webhookSecretAssociatedData(partnerId: number, subscriptionId: string): string {
  return `webhook:${partnerId}:${subscriptionId}`;
}

const subscription = { owner: webhookSubscriptions.partnerId, key: webhookSubscriptions.id };

/**
 * Every sealed column of the schema, with the associated data that the sealing code uses. A test compares the list with
 * the schema and opens a value of each column.
 */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { sealed: webhookSubscriptions.sealedSecret, word: "webhook", ...subscription },
  { sealed: webhookSubscriptions.sealedPreviousSecret, word: "webhook", ...subscription },
  { sealed: webhookSubscriptions.sealedHeaders, word: "webhook-headers", ...subscription },
  { sealed: reviewSites.sealedSecret, word: "provider", key: reviewSites.slug },
  { sealed: reviewSites.sealedPreviousSecret, word: "provider", key: reviewSites.slug },
  { sealed: auditWebhooks.sealedSecret, word: "audit-webhook", key: auditWebhooks.id },
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
    sealed: secondFactors.sealedSecret,
    word: "totp",
    owner: secondFactors.userId,
    key: secondFactors.id,
  },
  {
    sealed: secondFactorChallenges.sealedSecret,
    word: "new-totp",
    key: secondFactorChallenges.jti,
  },
  { sealed: keyedRequests.sealedResponse, word: "idempotency", key: keyedRequests.key },
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
  {
    sealed: erasures.sealedSelector,
    word: "erasure",
    key: erasures.id,
    where: sql`${erasures.state} <> 'done'`,
  },
];

export const MASTER_KEY_REMEDY =
  "Set MASTER_KEY (or MASTER_KEY_FILE) to the key of this database. During a rotation, set the old key as MASTER_KEY_PREVIOUS.";

/** Interval in ms at which a process renews its row in `processes`. */
const PUBLISH_MS = 20_000;
/** Minimum pause in ms between two checks of the sealed columns. */
const CHECK_MS = 5_000;
/**
 * Pause after a check of the sealed columns, as a multiple of the check's duration. With it, checks take 2 % of the
 * time.
 */
const CHECK_PAUSES = 50;
/** Time in s after which a process that has not renewed its row in `processes` counts as ended. */
const EXPIRY_S = 60;
/** Maximum time in ms that a stopping process waits for the database. */
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
 * Publishes the ids of this process' master keys for `rotate-master`, and checks that these keys open all stored
 * values. If they do not, the process is not ready, because it cannot verify requests of providers, sign POSTs or show
 * secrets.
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
   * Ends the process if its master keys do not open the stored values, because a restart does not help. The ids of the
   * keys are published first, so that this process and a concurrent `rotate-master` see each other. Rows of ended
   * processes are deleted. The method may be called again after an error.
   */
  async begin(): Promise<void> {
    const { db, box } = this.#deps;
    await this.#publish();
    await db.delete(processes).where(not(isRunning));
    const keyError = await masterKeyError(db, box);
    if (keyError === undefined) return;
    await this.close();
    console.error(`${keyError} ${MASTER_KEY_REMEDY}`);
    process.exit(EXIT_CONFIG);
  }

  /** Renews the row in `processes` and repeats the check until `close`. */
  run(): void {
    this.#publishing = this.#repeat(PUBLISH_MS, 0, () => this.#publish());
    void this.#repeat(CHECK_MS, CHECK_PAUSES, () => this.#check());
  }

  /** Rejects as long as a stored value is sealed with a key that this process does not have. */
  async check(): Promise<void> {
    if (this.#keyError !== undefined) throw new Error(this.#keyError);
  }

  /** Removes this process' row in `processes`, so that `rotate-master` does not wait for its expiry. */
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
  }

  async #check(): Promise<void> {
    const { db, box, log } = this.#deps;
    const keyError = await masterKeyError(db, box);
    if (keyError !== undefined && keyError !== this.#keyError)
      log.error("master_key.missing", { error: keyError });
    if (keyError === undefined && this.#keyError !== undefined) log.info("master_key.found");
    this.#keyError = keyError;
  }

  async #repeat(leastMs: number, share: number, work: () => Promise<void>): Promise<void> {
    const { clock, log } = this.#deps;
    const { signal } = this.#closing;
    for (let tookMs = 0; ;) {
      await clock.sleep(Math.max(leastMs, tookMs * share), signal);
      if (signal.aborted) return;
      const beganMs = clock.monotonicMs();
      await work().catch((error: unknown) => log.warn("master_key.unwatched", errorFields(error)));
      tookMs = clock.monotonicMs() - beganMs;
    }
  }
}

/**
 * Returns the running API and dispatcher processes with the ids of their master keys. The first id is that of the key
 * that seals.
 */
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

/**
 * Returns an error message about a missing master key; undefined if the available keys open the values of every sealed
 * column.
 */
export async function masterKeyError(db: Db, box: SecretBox): Promise<string | undefined> {
  // One statement for all columns, because every process repeats it every few seconds.
  const union = sql.join(
    SEALED_COLUMNS.map((column) => sql`(${sampleOfEachKey(db, column)})`),
    sql` union all `,
  );
  const samples = await db
    .select({ name: sql`name`.mapWith(String), sealed: sql`sealed`.mapWith(String) })
    .from(sql`(${union}) as samples`);
  const unknown = samples.find(({ sealed }) => !box.isKnown(sealed));
  if (unknown === undefined) return undefined;
  const [, keyId] = unknown.sealed.split(".");
  return (
    `The master key is wrong: ${unknown.name} holds values sealed with key ${keyId}, ` +
    "which is neither MASTER_KEY nor MASTER_KEY_PREVIOUS."
  );
}

function sampleOfEachKey(db: Db, { sealed, where }: SealedColumn) {
  const name = `${getTableName(sealed.table)}.${sealed.name}`;
  return db
    .select({ name: sql`${name}::text`.as("name"), sealed: min(sealed).as("sealed") })
    .from(sealed.table)
    .where(and(like(sealed, "v1.%"), where))
    .groupBy(sql`split_part(${sealed}, '.', 2)`);
}
