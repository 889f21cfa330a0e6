import type { Db } from "../../db/client.ts";
import { CHUNK, holdQueued, passLogged, postponeBehind } from "../../db/log.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { openingOnce, type SecretBox } from "../../src/lib/secrets.ts";
import { webhookSecretAssociatedData } from "../../src/master-key.ts";
import { openHeaders } from "../../src/outbox/own-headers.ts";
import type { Loaded, LoadRequest, Subscription } from "../actor/event.ts";
import { type AttemptRecord, commitAttempts } from "./attempt-queries.ts";
import { dispatchBatch, type BatchDispatch } from "./batch-queries.ts";
import { loadActive, type LoadedRows, type SubscriptionRow } from "./load-queries.ts";
import { WINDOW } from "./loaded-entries.ts";
import { sweepShards, type SweptSubscription } from "./sweep.ts";

export interface Answer extends Loaded {
  /**
   * True if the reviews that the request leaves out fill the window of the log, so that more entries may follow the
   * window.
   */
  readonly isFull?: boolean;
  /** True if loads walk past rows that they would not read after `postpone`. */
  readonly isBehind?: boolean;
  /** True if a held entry follows the entries of the answer, and has to be marked as held before the load goes on. */
  readonly isHeld?: boolean;
  /** True if no master key opens a secret or the headers of the subscription. */
  readonly isUnusable?: boolean;
}

/** The queries of the dispatcher. The simulation implements the same type in memory. */
export type DispatchStore = ReturnType<typeof createStore>;

/** The longest wait in milliseconds for the lock of an offset, as long as a commit waits for a lock. */
const LOCK_MS = 100;

/** The most headers of subscriptions that are cached opened; at the limit of contract 6.22 they take 10 MB. */
const MAX_HEADERS_OPENED = 1_000;

interface StoreDeps {
  readonly db: Db;
  /** A clock that shows the time of PostgreSQL (`PostgresClock`). */
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly log: Log;
  readonly config: { readonly batchHourMs: number };
}

export function createStore(deps: StoreDeps) {
  const { db, clock, log } = deps;
  const box = { open: openingOnce(deps.box) };
  const headersBox = { open: openingOnce(deps.box, MAX_HEADERS_OPENED) };
  return {
    /** Loads entries; returns a result for every request, in the same order. */
    load: async (requests: readonly LoadRequest[]) => {
      const found = await loadActive(db, requests);
      return requests.map((request, i) => toAnswer({ box, headersBox, log }, request, found[i]));
    },
    /**
     * Moves the offset of a subscription past one window of its log. The entries that it passes get rows in `outbox`.
     */
    passWindow: async (id: string): Promise<void> => {
      await passLogged(db, id, { limit: WINDOW, lockMs: LOCK_MS });
    },
    /** Postpones the rows behind entries that wait for a retry, so that loads do not walk past them. */
    postpone: async (request: LoadRequest): Promise<void> => {
      while ((await postponeBehind(db, request)) >= CHUNK);
    },
    /** Marks as held the next entries of the request whose account is not active. */
    hold: async (request: LoadRequest): Promise<void> => {
      const heldAt = clock.now();
      let after: number | null = request.after;
      for (let held = 0; after !== null && held === 0;)
        ({ searchedThrough: after, held } = await holdQueued(db, { ...request, after, heldAt }));
    },
    /** Commits attempt records. Those that are committed already change nothing. */
    commit(dispatcherId: string, records: readonly AttemptRecord[]) {
      const monotonicMs = clock.monotonicMs();
      return commitAttempts(db, dispatcherId, { records, now: clock.now(), monotonicMs });
    },
    dispatchBatch: (batch: Omit<BatchDispatch, "hourMs">) =>
      dispatchBatch(db, { ...batch, hourMs: deps.config.batchHourMs }),
    /**
     * Returns the subscriptions of each shard that have a due entry or batch: the first `limit` of each shard, or all
     * without `limit`.
     */
    sweep: (shards: readonly number[], limit?: number): Promise<SweptSubscription[]> =>
      sweepShards(db, shards, limit),
  };
}

interface OpeningDeps {
  readonly box: Pick<SecretBox, "open">;
  readonly headersBox: Pick<SecretBox, "open">;
  readonly log: Log;
}

function toAnswer(deps: OpeningDeps, request: LoadRequest, rows: LoadedRows | undefined): Answer {
  const subscription = rows && openSubscription(deps, request.id, rows.subscription);
  if (rows === undefined) return { request, found: undefined };
  if (subscription === undefined) return { request, found: undefined, isUnusable: true };
  const { lastSequence, nextDueAt, isBehind } = rows.subscription;
  const { entries, tests, isFull, isHeld } = rows;
  const found = {
    subscription,
    entries,
    tests,
    lastSequence,
    nextDueAt: nextDueAt ?? undefined,
  };
  return { request, isFull, isHeld, isBehind, found };
}

type SealedSecrets = Pick<
  SubscriptionRow,
  "sealedSecret" | "sealedPreviousSecret" | "sealedHeaders"
>;
type OpenedSecrets = Pick<Subscription, "secret" | "previousSecret" | "headers">;

/**
 * Decrypts the secrets and headers of a subscription. If no key decrypts them, the fault is ours: the function returns
 * undefined, so that nothing is sent and no failure counts until an operator has repaired the key.
 */
export function openSubscription<Row extends SealedSecrets & { readonly partnerId: number }>(
  { box, headersBox, log }: OpeningDeps,
  id: string,
  row: Row,
): (Omit<Row, keyof SealedSecrets> & OpenedSecrets) | undefined {
  const { sealedSecret, sealedPreviousSecret: sealed, sealedHeaders, ...settings } = row;
  const context = webhookSecretAssociatedData(row.partnerId, id);
  try {
    const previousSecret = sealed === null ? null : box.open(sealed, context);
    const headers = openHeaders(headersBox, { partnerId: row.partnerId, id }, sealedHeaders);
    return { ...settings, secret: box.open(sealedSecret, context), previousSecret, headers };
  } catch (error) {
    log.error("subscription.unusable", { subscription_id: id, ...errorFields(error) });
    return undefined;
  }
}
