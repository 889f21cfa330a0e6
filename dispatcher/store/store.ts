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
import { mailOwners } from "../mail/disable-mail.ts";
import type { BodySource, Entry, Subscription } from "../actor/entry.ts";
import { nextMailAt } from "../mail/queries.ts";
import * as queries from "./load-queries.ts";
import type { EntryRow, SubscriptionRow } from "./load-queries.ts";
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
  sweep(shards: readonly number[]): Promise<SweptSubscription[]>;
  readonly marks: MarkStore;
}

interface StoreDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly log: Log;
  readonly config: { readonly batchHourMs: number };
}

export function createStore(deps: StoreDeps): DispatchStore {
  const { db, clock } = deps;
  return {
    async load(requests) {
      const ids = requests.map((request) => request.id);
      const [subscriptions, entries] = await Promise.all([
        queries.activeSubscriptions(db, ids, clock.now()),
        queries.nextEntries(db, requests),
      ]);
      const known = new Map(subscriptions.map((row) => [row.id, row]));
      const entriesOf = Map.groupBy(entries, (row) => row.subscriptionId);
      return requests.map((request) => {
        const row = known.get(request.id);
        const subscription = row && openSubscription(deps, row);
        if (subscription === undefined) return { request, found: undefined };
        const own = (entriesOf.get(request.id) ?? []).map((entry) => toEntry(entry, subscription));
        return {
          request,
          found: {
            subscription,
            entries: own.filter((entry) => !entry.isTest),
            tests: own.filter((entry) => entry.isTest),
          },
        };
      });
    },
    async commit(dispatcherId, records, repeated) {
      const group = { records, repeated, now: clock.now() };
      // Only a permanent failure can disable, and only then is there a mail to write in the same transaction.
      if (records.every((record) => record.decision.kind !== "failed"))
        return commitAttempts(db, dispatcherId, group);
      return db.transaction(async (tx) => {
        const result = await commitAttempts(tx, dispatcherId, group);
        await mailOwners(tx, deps, result.disabled, group.now);
        return result;
      });
    },
    dispatchBatch: (batch) => dispatchBatch(db, { ...batch, hourMs: deps.config.batchHourMs }),
    async sweep(shards) {
      const found = await sweepShards(db, shards, clock.now());
      const mailAt = shards.includes(MAIL_WAKE.shard) ? await nextMailAt(db) : undefined;
      return mailAt === undefined ? found : [...found, { ...MAIL_WAKE, dueAt: mailAt }];
    },
    marks: {
      open: (shards) => openMarks(db, shards),
      settle: (mark, after) => settleChunk(db, mark, after),
      end: (mark) => endMark(db, mark),
    },
  };
}

/**
 * Opens the secrets of a subscription. One that no key opens is our own fault: undefined, so that nothing is sent and
 * nothing counts until it is mended.
 */
function openSubscription(
  { box, log }: { box: SecretBox; log: Log },
  row: SubscriptionRow,
): Subscription | undefined {
  const context = webhookSecretContext(row.partnerId, row.id);
  try {
    return {
      id: row.id,
      shard: row.shard,
      partnerId: row.partnerId,
      webhookUrl: row.webhookUrl,
      ordering: row.ordering,
      secret: box.open(row.sealedSecret, context),
      previousSecret:
        row.sealedPreviousSecret === null ? null : box.open(row.sealedPreviousSecret, context),
      nextBatchAt: row.nextBatchAt,
    };
  } catch (error) {
    log.error("subscription.unusable", { subscription_id: row.id, ...errorFields(error) });
    return undefined;
  }
}

function toEntry(row: EntryRow, subscription: Subscription): Entry {
  return {
    sequence: row.sequence,
    eventId: row.eventId,
    event: row.event,
    isTest: row.isTest,
    payloadMode: row.payloadMode,
    reviewId: row.reviewId,
    round: row.round,
    attempt: row.attempt,
    dueAt: row.dueAt,
    source: toSource(row, subscription),
  };
}

function toSource(row: EntryRow, { partnerId }: Subscription): BodySource {
  const {
    eventId,
    event,
    reviewHistoryId,
    occurredAt,
    storeId,
    storeReviewSiteId,
    actorJson,
    metadataJson,
  } = row;
  if (reviewHistoryId === null || storeId === null || storeReviewSiteId === null)
    return { kind: "test", eventId, partnerId, occurredAt };
  return {
    kind: "recorded",
    facts: {
      eventId,
      event,
      occurredAt,
      partnerId,
      reviewHistoryId,
      reviewId: row.reviewId,
      storeId,
      storeReviewSiteId,
      axis: row.axis,
      actorJson: actorJson ?? "null",
      reviewJson: row.reviewJson,
      siteJson: row.siteJson,
      metadataJson: metadataJson ?? "{}",
    },
  };
}
