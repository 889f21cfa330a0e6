import { isOutcomeUnknown, isStoreFailure } from "../../db/errors.ts";
import { boundLockWait } from "../../db/server.ts";
import { recordAccessDenied } from "../auth/actions/access-denied.ts";
import type { Caller } from "../http/principal.ts";
import { throwFieldErrors, toFieldErrors } from "../http/rules.ts";
import { inBatches } from "../lib/batches.ts";
import { systemClock } from "../lib/clock.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { Problem, unavailable } from "../lib/problem.ts";
import { holdSequences } from "../outbox/queries.ts";
import { type Draft, lockSubjects, writeActions, writeDraft } from "./apply-actions.ts";
import type { Action } from "./model.ts";
import * as queries from "./queries.ts";
import {
  claimFresh,
  ownersOf,
  placeAction,
  placeActions,
  type Placed,
  type PlacedAction,
  type TakingDeps,
  usersOf,
} from "./take-actions.ts";

interface TogetherDeps extends TakingDeps {
  readonly log: Log;
}

/** The valid actions of one request of a service. */
interface Given extends Caller {
  readonly actions: readonly Action[];
}

/** How many actions of a request were new, and how many of these changed nothing. */
interface Counts {
  readonly accepted: number;
  readonly unchanged: number;
}

/** A request, and what the transaction that tries to take it has counted. */
interface TakingRequest extends Given {
  tried?: Counts | undefined;
  /** The counts of the last try with new actions whose outcome is unknown. */
  lost?: Counts | undefined;
}

const ACTIONS_PER_GROUP = 256;
/** The most actions of a request in a group. A larger request has its own transaction, because it would delay others. */
const MAX_ACTIONS = 32;
/** How often a request is taken alone whose outcome stays unknown. */
const TRIES = 3;
/** The longest wait of a group for a lock in milliseconds, so that it does not wait for one request. */
const LOCK_MS = 100;

/**
 * Makes the function that takes the actions of a service, all or none (contract 9.7). Actions with known ids are left
 * out. It throws `validation_failed` with the fields that name something that does not exist or fit, and `forbidden` if
 * the service does not act for one of the partners.
 *
 * **Group commit**, as for provider events (src/providers/batch.ts). Requests that arrive while a transaction runs share
 * the next one, which skips locked rows and sequences. A request that needs one of these, cannot be taken as it is, is
 * large, or whose group fails, is taken in a transaction of its own, which waits for its locks.
 *
 * A request whose outcome is unknown is taken again. If none of its actions is new then, that try has taken them, and its
 * counts are answered.
 */
export function createTaker(deps: TogetherDeps) {
  const join = inBatches(
    // The real clock, because the wait for more requests must end although a test stops the other clock.
    systemClock,
    (requests: readonly TakingRequest[]) => takeGroup(deps, requests),
    {
      questions: 64,
      waiting: 1_024,
      waitMs: 6_000,
      sizes: [{ sizeOf: ({ actions }) => actions.length, atMost: ACTIONS_PER_GROUP }],
      // Longer than for provider events, because a request comes here only after the look-up of its token.
      gatherMs: 8,
    },
  );
  return async (given: Given) => {
    const request: TakingRequest = { ...given };
    const { actions } = request;
    const together = actions.length > MAX_ACTIONS ? undefined : await join(request);
    const taken = together ?? (await takeAloneAgain(deps, request));
    const counts = (taken.accepted === 0 && request.lost) || taken;
    return { ...counts, duplicates: actions.length - counts.accepted };
  };
}

/** Takes a request alone, and again while its outcome is unknown. */
async function takeAloneAgain(deps: TogetherDeps, request: TakingRequest): Promise<Counts> {
  for (let tried = 1; tried <= TRIES; tried++)
    try {
      return await takeAlone(deps, request);
    } catch (error) {
      if (!isOutcomeUnknown(error)) throw error;
      // A later try finds new actions only if none of the tries before it was committed.
      if (request.tried !== undefined && request.tried.accepted > 0) request.lost = request.tried;
    }
  // The service repeats the request, whose ids are known if it was taken.
  throw unavailable();
}

async function takeAlone(deps: TogetherDeps, request: TakingRequest): Promise<Counts> {
  const { principal, requestContext, actions } = request;
  const found = await placeActions(deps.db, actions);
  throwErrors(found);
  const placed = found.flatMap((one) => ("action" in one ? [one] : []));
  const partners = [...new Set(placed.map(({ partnerId }) => partnerId))];
  const foreign = partners.filter((one) => principal.actsForPartners?.includes(one) === false);
  if (foreign.length > 0) {
    const details = { reason: "foreign_partner", partner_ids: foreign };
    await recordAccessDenied(deps, principal, { requestContext, details });
    throw new Problem("forbidden");
  }
  const now = deps.clock.now();
  const { wakes, counts } = await deps.writerPool.transaction(partners, async (tx) => {
    const given = placed.map((one) => ({
      serviceId: principal.userId,
      id: one.action.id,
      placed: one,
    }));
    const fresh = (await claimFresh(tx, given, now)).map((one) => one.placed);
    const { unchanged, wakes: written } = await writeActions(tx, fresh, now);
    const tried = { accepted: fresh.length, unchanged: unchanged.size };
    request.tried = tried;
    return { wakes: await written, counts: tried };
  });
  // Wakes the dispatcher after the commit, because an earlier wake could find the entries still invisible.
  deps.schedule.wake(wakes);
  return counts;
}

function throwErrors(found: readonly Placed[]): void {
  const errors = found.flatMap((one, index) =>
    "errors" in one
      ? Object.entries(one.errors).map(([field, text]) => [`actions.${index}.${field}`, text])
      : [],
  );
  throwFieldErrors(toFieldErrors(Object.fromEntries(errors)));
}

/** Takes requests in one transaction. The result of a request that has to be taken alone is undefined. */
async function takeGroup(
  deps: TogetherDeps,
  requests: readonly TakingRequest[],
): Promise<(Counts | undefined)[]> {
  const now = deps.clock.now();
  const actions = requests.flatMap((one) => one.actions);
  const given = requests.flatMap((request) =>
    request.actions.map(({ id }, index) => ({
      serviceId: request.principal.userId,
      id,
      request,
      index,
    })),
  );
  try {
    const recorded = await deps.writerPool.group(async (tx) => {
      // The statements are sent together. None waits for rows or sequences, and the claims wait 100 ms at most, so that a
      // group cannot be part of a deadlock.
      const [, draft, users, claimed] = await Promise.all([
        boundLockWait(tx, LOCK_MS),
        lockSubjects(tx, actions, { skipLocked: true }),
        usersOf(tx, actions),
        claimFresh(tx, given, now),
      ]);
      const locked = placesOf(draft);
      const subjects = [...locked.reviews.values(), ...locked.sites.values()];
      const partners = [...new Set(subjects.map(({ partnerId }) => partnerId))];
      const [busy, owners] = await Promise.all([
        holdSequences(tx, partners, false),
        ownersOf(tx, actions, subjects),
      ]);
      const free = new Map(
        requests.flatMap((request) => {
          const { actsForPartners } = request.principal;
          const isFree = (one: Placed): one is PlacedAction =>
            "action" in one &&
            !busy.has(one.partnerId) &&
            actsForPartners?.includes(one.partnerId) !== false;
          const placed = request.actions.map((one) =>
            placeAction(one, { ...locked, users, owners }),
          );
          return placed.every(isFree) ? [[request, placed] as const] : [];
        }),
      );
      const dropped = claimed.filter(({ request }) => !free.has(request));
      if (dropped.length > 0)
        await queries.dropClaims(
          tx,
          dropped.map(({ serviceId, id }) => ({ serviceId, id })),
        );
      const fresh = claimed.filter(({ request }) => free.has(request));
      const written = fresh.flatMap(({ request, index }) => free.get(request)?.[index] ?? []);
      const { wakes, unchanged } = writeDraft(tx, draft, written, now);
      for (const one of requests) {
        const placed = free.get(one);
        one.tried = placed && {
          accepted: fresh.filter(({ request }) => request === one).length,
          unchanged: placed.filter((action) => unchanged.has(action)).length,
        };
      }
      return wakes;
    });
    deps.schedule.wake(recorded);
    return requests.map(({ tried }) => tried);
  } catch (error) {
    // After any other error nothing was written.
    if (isOutcomeUnknown(error)) for (const one of requests) one.lost = one.tried;
    else if (isStoreFailure(error)) throw error;
    deps.log.warn("actions.group_split", { requests: requests.length, ...errorFields(error) });
    return requests.map(() => undefined);
  }
}

/** Returns the places of the reviews and connections that a group has locked. */
function placesOf({ reviews, sites, lockedSites }: Draft) {
  const locked = [...sites.values()].filter(({ id }) => lockedSites.has(id));
  return {
    reviews: new Map(
      [...reviews.values()].map(({ id, partnerId, accountId, sourcePlatform: slug }) => [
        id,
        { partnerId, accountId, slug },
      ]),
    ),
    sites: new Map(locked.map((one) => [one.id, one])),
  };
}
