import type { Db } from "../../db/client.ts";
import { passLogged } from "../../db/log.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import type { SecretBox } from "../../src/lib/secret-box.ts";
import { MAIL_WAKE } from "../../src/outbox/mail.ts";
import { webhookSecretContext } from "../../src/outbox/sealed-columns.ts";
import type { Loaded, LoadRequest } from "../actor/event.ts";
import { commitAttempts, type CommitResult } from "./commit.ts";
import type { AttemptRecord } from "./attempt.ts";
import { dispatchBatch, type BatchDispatch, type BatchResult } from "./batch-queries.ts";
import type { Subscription } from "../actor/entry.ts";
import { nextMailAt } from "../mail/queries.ts";
import * as queries from "./load-queries.ts";
import { WINDOW, type LoadedRows, type SubscriptionRow } from "./load-queries.ts";
import { sweepShards, type SweptSubscription } from "./sweep.ts";

/** Postgres as the dispatcher sees it; the simulation has its own. */
export interface DispatchStore {
  /** Answers every request, in the same order. */
  load(requests: readonly LoadRequest[]): Promise<Loaded[]>;
  /** May be called again with records that were committed: they change nothing more. */
  commit(dispatcherId: string, records: readonly AttemptRecord[]): Promise<CommitResult>;
  dispatchBatch(batch: Omit<BatchDispatch, "hourMs">): Promise<BatchResult>;
  /** Of each shard the first so many subscriptions with entries, or else all. */
  sweep(shards: readonly number[], limit?: number): Promise<SweptSubscription[]>;
}

interface StoreDeps {
  readonly db: Db;
  /** The clock of Postgres. */
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly log: Log;
  readonly config: { readonly batchHourMs: number };
}

export function createStore(deps: StoreDeps): DispatchStore {
  const { db, clock } = deps;
  return {
    load: async (requests) => {
      const found = await loadPassing(db, requests);
      return requests.map((request, i) => toLoaded(deps, request, found[i]));
    },
    commit(dispatcherId, records) {
      const monotonicMs = clock.monotonicMs();
      return commitAttempts(db, dispatcherId, { records, now: clock.now(), monotonicMs });
    },
    dispatchBatch: (batch) => dispatchBatch(db, { ...batch, hourMs: deps.config.batchHourMs }),
    async sweep(shards, limit) {
      const found = await sweepShards(db, shards, limit);
      const mailAt = shards.includes(MAIL_WAKE.shard) ? await nextMailAt(db) : undefined;
      if (mailAt === undefined) return found;
      return [...found, { ...MAIL_WAKE, dueInMs: mailAt.getTime() - clock.now().getTime() }];
    },
  };
}

/** What is left for the next sweep: each takes some 10 ms. */
const PASSES_PER_LOAD = 32;
/** As long as a commit waits for an offset: the other subscriptions of a load wait with it. */
const LOCK_MS = 100;

/**
 * Loads, and where the reviews that a request leaves out fill the window of its log, has the offset pass that window and
 * looks again: the other reviews are not to wait behind them.
 */
async function loadPassing(
  db: Db,
  requests: readonly LoadRequest[],
  passes = 0,
): Promise<(LoadedRows | undefined)[]> {
  const found = await queries.loadActive(db, requests);
  const full = found.flatMap((rows, i) => (rows?.isFull ? [i] : []));
  if (full.length === 0 || passes >= PASSES_PER_LOAD) return found;
  const again = full.flatMap((i) => requests[i] ?? []);
  for (const { id } of again) await passLogged(db, id, { limit: WINDOW, lockMs: LOCK_MS });
  const next = await loadPassing(db, again, passes + 1);
  full.forEach((i, n) => (found[i] = next[n]));
  return found;
}

function toLoaded(deps: StoreDeps, request: LoadRequest, rows: LoadedRows | undefined): Loaded {
  const subscription = rows && openSubscription(deps, request, rows.subscription);
  if (rows === undefined || subscription === undefined) return { request, found: undefined };
  const { entries, tests } = rows;
  return {
    request,
    found: { subscription, entries, tests, lastSequence: rows.subscription.lastSequence },
  };
}

/**
 * Opens the secrets of a subscription. One that no key opens is our own fault: undefined, so that nothing is sent and
 * nothing counts until it is mended.
 */
function openSubscription(
  { box, log }: { box: SecretBox; log: Log },
  { id, shard }: Pick<LoadRequest, "id" | "shard">,
  row: SubscriptionRow,
): Subscription | undefined {
  const { sealedSecret, sealedPreviousSecret: sealed, ...settings } = row;
  const context = webhookSecretContext(row.partnerId, id);
  try {
    const previousSecret = sealed === null ? null : box.open(sealed, context);
    return { ...settings, id, shard, secret: box.open(sealedSecret, context), previousSecret };
  } catch (error) {
    log.error("subscription.unusable", { subscription_id: id, ...errorFields(error) });
    return undefined;
  }
}
