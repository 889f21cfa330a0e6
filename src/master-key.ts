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

/** A column whose values are sealed with the master key. */
export interface SealedColumn {
  readonly sealed: PgColumn;
  /** The context of a value is this word with the values that its row has in `owner`, if it has one, and `key`. */
  readonly word: string;
  readonly owner?: PgColumn;
  /** A unique text column. */
  readonly key: PgColumn;
  /** Further states of a row in which the column is empty, for the index that leaves them out. */
  readonly where?: SQL;
}

/** The columns whose values are in the context. */
export function boundBy({ owner, key }: SealedColumn): PgColumn[] {
  return owner === undefined ? [key] : [owner, key];
}

/** The context that a value of this row is bound to. */
export function associatedDataOf(
  column: SealedColumn,
  row: Readonly<Record<string, unknown>>,
): string {
  return [column.word, ...boundBy(column).map(({ name }) => String(row[name]))].join(":");
}

/** The context that a webhook secret is bound to: in another subscription or tenant it does not open (contract 6.6). */
export function webhookSecretAssociatedData(partnerId: number, subscriptionId: string): string {
  return `webhook:${partnerId}:${subscriptionId}`;
}

const webhookSecret = {
  word: "webhook",
  owner: webhookSubscriptions.partnerId,
  key: webhookSubscriptions.id,
};

/**
 * Every sealed column of the schema, with the context of its values as the code that seals them has it; a test holds
 * the list against the schema and opens a value of each.
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
  #keyError: string | undefined;

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
    const keyError = await masterKeyError(db, box);
    if (keyError === undefined) return;
    await this.close();
    console.error(`${keyError} ${MASTER_KEY_REMEDY}`);
    process.exit(EXIT_CONFIG);
  }

  /** Goes on until `close`. */
  run(): void {
    this.#publishing = this.#repeat(0, () => this.#publish());
    void this.#repeat(LOOK_SHARE, () => this.#look());
  }

  /** Rejects while a stored value was sealed with a key that this process does not have. */
  async check(): Promise<void> {
    if (this.#keyError !== undefined) throw new Error(this.#keyError);
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
