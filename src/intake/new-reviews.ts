import { isDeadlock, isLockTimeout, isOutcomeUnknown, isStoreFailure } from "../../db/errors.ts";
import type { Key } from "../lib/kind-key.ts";
import { errorFields, type Log } from "../lib/log.ts";
import type { Clock } from "../lib/clock.ts";
import type { Waker } from "../outbox/schedule.ts";
import type { WriterPool } from "../outbox/writer-pool.ts";
import { isInvalid } from "./admit.ts";
import {
  type Change,
  claimOf,
  type IntakeRequest,
  partnersOf,
  type ProviderRequest,
  type RequestResult,
  reviewKey,
} from "./change.ts";
import { apply, draftOf, outcomeOf } from "./decide.ts";
import { insertReviews } from "./queries/new-reviews.ts";
import { withIds } from "./write.ts";

interface NewReviewsDeps {
  readonly writerPool: Pick<WriterPool, "run">;
  readonly clock: Clock;
  readonly schedule: Waker;
  readonly log: Log;
}

/** Maximum number of batches that are written with a look-up after a conflict. */
const MAX_PAUSE = 16;

/**
 * Creates the function that writes a batch in one statement without a look-up, if each of its changes reports a new
 * review. An insert without a conflict proves that the reviews are new. The function returns undefined, and has written
 * nothing, if the batch contains other changes, or if a row exists or is locked. After each such conflict it returns
 * undefined for a number of batches, which doubles every time.
 */
export function createNewReviewsWriter(deps: NewReviewsDeps) {
  let [pause, skipped] = [0, 0];
  return async (requests: readonly IntakeRequest[]): Promise<RequestResult[] | undefined> => {
    if (skipped < pause) {
      skipped++;
      return undefined;
    }
    const reports = reportsOfNewReviews(requests);
    const result = reports && (await writeNew(deps, reports));
    if (reports !== undefined)
      pause = result === undefined ? Math.min(2 * pause + 1, MAX_PAUSE) : 0;
    skipped = 0;
    return result;
  };
}

/** A provider's request, and for each change in it the ids and the key of its review. */
interface Reports {
  readonly request: ProviderRequest;
  readonly named: readonly {
    readonly change: Change;
    readonly id: string;
    readonly siteId: number;
    readonly key: Key<"review">;
  }[];
}

/**
 * Returns the requests as reports if every change may be the first report of a review at a connection of its provider.
 * Otherwise returns undefined.
 */
export function reportsOfNewReviews(requests: readonly IntakeRequest[]): Reports[] | undefined {
  const ids = new Set<Key<"provider-event" | "action" | "review">>();
  const all: Reports[] = [];
  let changes = 0;
  for (const request of requests) {
    if (request.sender !== "provider" || isInvalid(request.read)) return undefined;
    const named = request.read.changes.flatMap((change) => {
      const { id, subject, what } = change;
      if (id === undefined || what.kind !== "report" || !what.creates) return [];
      if (!("siteId" in subject) || subject.externalReviewId === undefined) return [];
      const { siteId, externalReviewId } = subject;
      if (request.sites.get(siteId)?.slug !== request.slug) return [];
      return [{ change, id, siteId, key: reviewKey(siteId, externalReviewId) }];
    });
    if (named.length < request.read.changes.length) return undefined;
    for (const { id, key } of named) ids.add(claimOf(request, id)).add(key);
    changes += named.length;
    all.push({ request, named });
  }
  return ids.size === 2 * changes ? all : undefined;
}

async function writeNew(
  deps: NewReviewsDeps,
  reports: readonly Reports[],
): Promise<RequestResult[] | undefined> {
  const now = deps.clock.now();
  const requests = reports.map(({ request }) => request);
  const all = reports.flatMap(({ named }) => named);
  const sites = new Map(requests.flatMap((one) => [...one.sites]));
  const draft = draftOf(
    {
      sites,
      reviews: new Map(),
      ids: new Map(),
      newIds: new Map(all.map(({ key }, i) => [key, i + 1])),
      suppressing: new Set(),
      profanity: new Map(requests.flatMap((one) => [...one.profanity])),
    },
    now,
  );
  for (const { change } of all) apply(draft, change);
  const { created, actions } = outcomeOf(draft);
  const partners = partnersOf(requests);
  const given = {
    requests: requests.map(({ slug, signed }) => ({ slug, ...signed })),
    claims: reports.flatMap(({ request: { slug }, named }) =>
      named.map(({ id }) => ({ slug, id })),
    ),
    connections: [...new Set(all.map(({ siteId }) => siteId))].flatMap((id) => {
      const site = sites.get(id);
      if (site === undefined) return [];
      const { slug, storeId, accountId, partnerId } = site;
      return [{ slug, id, storeId, accountId, partnerId }];
    }),
    created,
    actions: withIds(actions, now),
    partners,
  };
  const decided = reports.map(
    ({ named }) => ({ kind: "accepted", accepted: named.length, unchanged: 0 }) as const,
  );
  try {
    const wakes = await insertReviews(deps.writerPool.run, given, now);
    deps.schedule.wake(wakes);
    return decided;
  } catch (error) {
    if (isOutcomeUnknown(error)) {
      deps.log.warn("intake.outcome_unknown", { requests: requests.length, ...errorFields(error) });
      const eventId = given.actions[0]?.eventId;
      return decided.map((lost) => ({ kind: "deferred", reason: "write", lost, eventId }));
    }
    if (isStoreFailure(error) && !isDeadlock(error) && !isLockTimeout(error)) throw error;
    return undefined;
  }
}
