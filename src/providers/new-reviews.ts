import { isDeadlock, isLockTimeout, isOutcomeUnknown, isStoreFailure } from "../../db/errors.ts";
import type { Key } from "../lib/kind-key.ts";
import { errorFields, type Log } from "../lib/log.ts";
import type { Clock } from "../lib/clock.ts";
import { holdSequencesOrFail } from "../outbox/queries.ts";
import type { Waker } from "../outbox/schedule.ts";
import type { WriterPool } from "../outbox/writer-pool.ts";
import {
  claimKey,
  isInvalid,
  type ProviderRequest,
  partnersOf,
  type RequestResult,
} from "./decide-batch.ts";
import { decideEvents } from "./decide.ts";
import { type ProviderEvent, reviewKey } from "./model.ts";
import { insertReviews } from "./queries/insert-reviews.ts";
import { toAction } from "./record.ts";

interface NewReviewsDeps {
  readonly writerPool: Pick<WriterPool, "group">;
  readonly clock: Clock;
  readonly schedule: Waker;
  readonly log: Log;
}

/** The most batches that are written with a look-up, after one that was not as new as it seemed. */
const MAX_PAUSE = 16;

/**
 * Makes the function that writes a batch without a look-up, if each of its events reports a new review: an insert that meets
 * no conflict proves it. The whole batch is then one round trip. It returns undefined, and has written nothing, if the batch
 * has other events or if anything conflicts. After each conflict the next batches are not tried, twice as many as before.
 */
export function createNewReviewsWriter(deps: NewReviewsDeps) {
  let [pause, skipped] = [0, 0];
  return async (requests: readonly ProviderRequest[]): Promise<RequestResult[] | undefined> => {
    if (skipped < pause) {
      skipped++;
      return undefined;
    }
    const isNew = areNewReviews(requests);
    const result = isNew ? await writeNew(deps, requests) : undefined;
    if (isNew) pause = result === undefined ? Math.min(2 * pause + 1, MAX_PAUSE) : 0;
    skipped = 0;
    return result;
  };
}

/** Whether each event of these requests may be the first report of a review, at a connection of its provider. */
export function areNewReviews(requests: readonly ProviderRequest[]): boolean {
  const ids = new Set<Key<"provider-event" | "review">>();
  let events = 0;
  for (const { slug, read, sites } of requests) {
    if (isInvalid(read)) return false;
    for (const event of read.events) {
      if (event.type !== "review.created" || sites.get(event.siteId)?.slug !== slug) return false;
      ids.add(claimKey(slug, event.id)).add(reviewKey(event.siteId, event.externalReviewId));
      events++;
    }
  }
  return ids.size === 2 * events;
}

async function writeNew(
  deps: NewReviewsDeps,
  requests: readonly ProviderRequest[],
): Promise<RequestResult[] | undefined> {
  const now = deps.clock.now();
  const events = requests.flatMap(({ read }) => read.events);
  const sites = new Map(requests.flatMap((one) => [...one.sites]));
  const { recorded, created } = decideEvents(events, {
    sites,
    reviews: new Map(),
    newIds: new Map(events.map((event, i) => [newReviewKey(event), i + 1])),
    suppressing: new Set(),
    profanity: new Map(requests.flatMap((one) => [...one.profanity])),
  });
  const partners = partnersOf(requests);
  const given = {
    requests: requests.map(({ slug, signed }) => ({ slug, ...signed })),
    claims: requests.flatMap(({ slug, read }) =>
      read.events.flatMap(({ id, siteId }) => {
        const site = sites.get(siteId);
        if (site === undefined) return [];
        const { storeId, accountId, partnerId } = site;
        return [{ slug, id, siteId, storeId, accountId, partnerId }];
      }),
    ),
    created,
    actions: recorded.map((one) => toAction(one, now)),
    partners,
  };
  try {
    const [, wakes] = await deps.writerPool.group((tx) =>
      Promise.all([holdSequencesOrFail(tx, partners), insertReviews(tx, given, now)]),
    );
    deps.schedule.wake(wakes);
    return requests.map(({ read }) => ({ kind: "accepted", accepted: read.events.length }));
  } catch (error) {
    if (isOutcomeUnknown(error)) {
      deps.log.warn("ingest.outcome_unknown", { requests: requests.length, ...errorFields(error) });
      return requests.map(({ read }) => ({
        kind: "deferred",
        reason: "write",
        lost: { kind: "accepted", newEvents: read.events },
      }));
    }
    if (isStoreFailure(error) && !isDeadlock(error) && !isLockTimeout(error)) throw error;
    return undefined;
  }
}

function newReviewKey(event: ProviderEvent): Key<"review"> {
  return reviewKey(event.siteId, "externalReviewId" in event ? event.externalReviewId : "");
}
