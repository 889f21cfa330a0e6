import type { Db } from "../../db/client.ts";
import { endMark, openMarks, settleChunk } from "../../db/marks.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import type { SecretBox } from "../../src/lib/secret-box.ts";
import { MAIL_WAKE } from "../../src/outbox/mail.ts";
import { webhookSecretContext } from "../../src/outbox/secret-context.ts";
import type { Loaded, LoadRequest } from "../actor/event.ts";
import { commitAttempts, type CommitResult } from "./attempt-queries.ts";
import type { AttemptRecord } from "./attempt.ts";
import { dispatchBatch, type BatchDispatch, type BatchResult } from "./batch.ts";
import type { Subscription } from "../actor/entry.ts";
import { nextMailAt } from "../mail/queries.ts";
import * as queries from "./load-queries.ts";
import type { LoadedRows, SubscriptionRow } from "./load-queries.ts";
import { RecentHeads } from "./heads.ts";
import type { MarkStore } from "./settle-marks.ts";
import { sweepShards, type SweptSubscription } from "./sweep.ts";

/** Postgres as the dispatcher sees it; the simulation has its own. */
export interface DispatchStore {
  /** Answers every request, in the same order. */
  load(requests: readonly LoadRequest[]): Promise<Loaded[]>;
  /** `repeated` says that the records may have been committed before, by a commit whose answer was lost. */
  commit(
    dispatcherId: string,
    records: readonly AttemptRecord[],
    repeated: boolean,
  ): Promise<CommitResult>;
  dispatchBatch(batch: Omit<BatchDispatch, "hourMs">): Promise<BatchResult>;
  /** Of each shard the first so many subscriptions with entries, or else all. */
  sweep(shards: readonly number[], limit?: number): Promise<SweptSubscription[]>;
  readonly marks: MarkStore;
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
  const heads = new RecentHeads(clock);
  return {
    load: (requests) =>
      heads.use(async (known) => {
        const asked = requests.map((one) => ({
          ...one,
          after: Math.max(one.after, known.settledOf(one.id)),
        }));
        const found = await queries.loadActive(db, asked);
        return requests.map((request, i) => {
          const head = headSeen(request, found[i]);
          if (head !== undefined) known.saw(request, head - 1);
          return toLoaded(deps, request, found[i]);
        });
      }),
    commit(dispatcherId, records, repeated) {
      const monotonicMs = clock.monotonicMs();
      return commitAttempts(db, dispatcherId, { records, repeated, now: clock.now(), monotonicMs });
    },
    dispatchBatch: (batch) => dispatchBatch(db, { ...batch, hourMs: deps.config.batchHourMs }),
    sweep: (shards, limit) =>
      heads.use(async (known) => {
        const found = await sweepShards(db, { shards, stretches: known.stretches(shards), limit });
        for (const { subscriptionId: id, shard, sequence } of found)
          if (sequence !== null) known.saw({ id, shard }, sequence - 1);
        const mailAt = shards.includes(MAIL_WAKE.shard) ? await nextMailAt(db) : undefined;
        if (mailAt === undefined) return found;
        return [...found, { ...MAIL_WAKE, dueInMs: mailAt.getTime() - clock.now().getTime() }];
      }),
    marks: {
      open: (shards) => openMarks(db, shards),
      settle: (mark, after) => settleChunk(db, mark, after),
      end: (mark) => endMark(db, mark),
    },
  };
}

/** The first entry that the subscription has, if this load shows it: what it asked for may lie behind that. */
function headSeen(
  { after, limit, exceptReviews }: LoadRequest,
  rows: LoadedRows | undefined,
): number | undefined {
  const [first] = rows?.entries ?? [];
  const isWhole = after === 0 && limit > 0 && exceptReviews.length === 0;
  // Test events come by the time that they are due, so there may be earlier ones.
  return isWhole && !rows?.entries.some((entry) => entry.isTest) ? first?.sequence : undefined;
}

function toLoaded(deps: StoreDeps, request: LoadRequest, rows: LoadedRows | undefined): Loaded {
  const subscription = rows && openSubscription(deps, request, rows.subscription);
  if (rows === undefined || subscription === undefined) return { request, found: undefined };
  const { entries: own } = rows;
  return {
    request,
    found: {
      subscription,
      entries: own.filter((entry) => !entry.isTest),
      tests: own.filter((entry) => entry.isTest),
      lastSequence: rows.subscription.lastSequence ?? undefined,
    },
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
  const context = webhookSecretContext(row.partnerId, id);
  try {
    return {
      id,
      shard,
      partnerId: row.partnerId,
      webhookUrl: row.webhookUrl,
      ordering: row.ordering,
      secret: box.open(row.sealedSecret, context),
      previousSecret:
        row.sealedPreviousSecret === null ? null : box.open(row.sealedPreviousSecret, context),
      nextBatchAt: row.nextBatchAt,
    };
  } catch (error) {
    log.error("subscription.unusable", { subscription_id: id, ...errorFields(error) });
    return undefined;
  }
}
