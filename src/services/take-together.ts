import { isStoreFailure } from "../../db/errors.ts";
import { inBatches } from "../lib/batches.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { holdSequences } from "../outbox/queries.ts";
import { type Draft, lockSubjects, writeActions, writeDraft } from "./apply-actions.ts";
import * as queries from "./queries.ts";
import {
  claimFresh,
  claimsOf,
  placeActions,
  type PlacedAction,
  type Taker,
  type TakingDeps,
  type TakingRequest,
} from "./take-actions.ts";

interface TogetherDeps extends TakingDeps {
  readonly log: Log;
}

const LIMITS = { questions: 64, waiting: 1_024, waitMs: 6_000 };
const ACTIONS_PER_GROUP = 256;
/** The most actions of a request in a group. A larger request has its own transaction, because it would delay others. */
const MAX_ACTIONS = 32;

/**
 * **Group commit**, as for provider events (src/providers/batch.ts). Requests that arrive while a transaction runs share the
 * next one, which skips locked rows and sequences. A request that needs one of these, or is large, or whose group fails, is
 * taken in a transaction of its own, which waits for its locks.
 */
export function createTaker(deps: TogetherDeps): Taker {
  const place = inBatches(
    deps.clock,
    (requests: readonly Parameters<Taker["place"]>[0][]) => placeAll(deps, requests),
    LIMITS,
  );
  const join = inBatches(
    deps.clock,
    (requests: readonly TakingRequest[]) => takeGroup(deps, requests),
    {
      ...LIMITS,
      sizes: [{ sizeOf: ({ placed }) => placed.length, atMost: ACTIONS_PER_GROUP }],
      gatherMs: 3,
    },
  );
  return {
    place,
    async take(request) {
      const { placed, partners } = request;
      const isAlone = placed.length > MAX_ACTIONS || deps.writerPool.isBlocked(partners);
      return (isAlone ? undefined : await join(request)) ?? takeAlone(deps, request);
    },
  };
}

/** Looks up the actions of several requests with the statements of one. */
async function placeAll({ db }: TogetherDeps, requests: readonly Parameters<Taker["place"]>[0][]) {
  const places = (await placeActions(db, requests.flat())).values();
  return requests.map((actions) =>
    actions.map(() => {
      const { value } = places.next();
      return value ?? { errors: {} };
    }),
  );
}

async function takeAlone(deps: TogetherDeps, { serviceId, placed, partners }: TakingRequest) {
  const now = deps.clock.now();
  const { recorded, count } = await deps.writerPool.transaction(partners, async (tx) => {
    const given = placed.map((one) => ({ serviceId, placed: one }));
    const fresh = (await claimFresh(tx, given, now)).map((one) => one.placed);
    return { recorded: await writeActions(tx, fresh, now), count: fresh.length };
  });
  // Wakes the dispatcher after the commit, because an earlier wake could find the entries still invisible.
  await deps.schedule.wake(recorded);
  return count;
}

/** Takes requests in one transaction. The result of a request that has to be taken alone is undefined. */
async function takeGroup(
  deps: TogetherDeps,
  requests: readonly TakingRequest[],
): Promise<(number | undefined)[]> {
  const now = deps.clock.now();
  try {
    const { recorded, counts } = await deps.writerPool.group(async (tx) => {
      const placed = requests.flatMap((one) => one.placed);
      const partners = [...new Set(requests.flatMap((one) => one.partners))];
      const given = requests.flatMap((one) =>
        one.placed.map((action) => ({ request: one, serviceId: one.serviceId, placed: action })),
      );
      // The statements are sent together. None waits for rows or sequences, and the claims wait 100 ms at most, so that a
      // group cannot be part of a deadlock.
      const [, draft, held, claimed] = await Promise.all([
        queries.boundLockWait(tx),
        lockSubjects(tx, placed, { skipLocked: true }),
        holdSequences(tx, partners, false),
        claimFresh(tx, given, now),
      ]);
      const free = new Set(requests.filter((one) => isFree(one, draft, held)));
      const fresh = claimed.filter(({ request }) => free.has(request));
      if (free.size < requests.length)
        await queries.dropClaims(tx, claimsOf(claimed.filter(({ request }) => !free.has(request))));
      return {
        counts: requests.map((one) =>
          free.has(one) ? fresh.filter(({ request }) => request === one).length : undefined,
        ),
        recorded: await writeDraft(
          tx,
          draft,
          fresh.map((one) => one.placed),
          now,
        ),
      };
    });
    await deps.schedule.wake(recorded);
    return counts;
  } catch (error) {
    // After a store failure the result of the commit is unknown. After any other error nothing was written.
    if (isStoreFailure(error)) throw error;
    deps.log.warn("actions.group_split", { requests: requests.length, ...errorFields(error) });
    return requests.map(() => undefined);
  }
}

/** Whether a group has all locks that a request needs. */
function isFree({ placed }: TakingRequest, draft: Draft, held: ReadonlySet<number>): boolean {
  const isLocked = ({ action, partnerId }: PlacedAction) =>
    !held.has(partnerId) &&
    (action.review_id === undefined
      ? draft.sites.has(action.store_review_site_id ?? 0)
      : draft.reviews.has(action.review_id));
  return placed.every(isLocked);
}
