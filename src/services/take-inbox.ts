import type { Static } from "@sinclair/typebox";

import type { Tx } from "../../db/client.ts";
import { isLockTimeout, isStoreFailure, isTooMuch } from "../../db/errors.ts";
import { examine } from "../http/fields.ts";
import { errorFields, type Log } from "../lib/log.ts";
import type { CountInbox } from "../http/metrics.ts";
import { Problem } from "../lib/problem.ts";
import { type Action, ActionBody, MAX_ACTIONS } from "./model.ts";
import { writeActions } from "./apply-actions.ts";
import * as queries from "./queries.ts";
import { MAX_ACTION_BYTES } from "./sizes.ts";
import {
  actionErrors,
  claimFresh,
  placeActions,
  type PlacedAction,
  type TakingDeps,
} from "./take-actions.ts";

interface InboxDeps extends TakingDeps {
  readonly log: Log;
  /** Adds actions that were taken over to the metrics. */
  readonly countInbox: CountInbox;
}

/** The pause in milliseconds before the inbox is read again once it is empty; an action is taken within a second. */
const PAUSE_MS = 800;

/** Takes actions of the inbox over until the process stops. Several processes share the work by partner. */
export async function followInbox(deps: InboxDeps, stop: AbortSignal): Promise<void> {
  const tries: Tries = new Map();
  while (!stop.aborted) {
    const isMore = await takeInbox(deps, tries).catch((error: unknown) => {
      deps.log.warn("inbox.failed", errorFields(error));
      return false;
    });
    if (!isMore) await deps.clock.sleep(PAUSE_MS, stop);
  }
}

/** How many actions of a partner are tried together next, if those of the last try could not be taken. */
type Tries = Map<number, number>;

/**
 * Takes the next actions of each partner over (contract 9.8). Returns whether more may wait. A partner that fails is left
 * for the next round, and the others go on. Where fewer actions have to be tried, the others have their turn in between.
 */
export async function takeInbox(deps: InboxDeps, tries: Tries = new Map()): Promise<boolean> {
  let isMore = false;
  for (let isSplit = true; isSplit;) {
    isSplit = false;
    for (const partnerId of await queries.inboxPartners(deps.db))
      try {
        const result = await takeOrSetAside(deps, partnerId, tries);
        if (result === "fewer") isSplit = true;
        if (result !== "none") isMore = true;
      } catch (error) {
        const isBusy = isLockTimeout(error) || error instanceof Problem;
        const fields = { partner_id: partnerId, ...errorFields(error) };
        if (isBusy) deps.log.debug("inbox.partner_busy", fields);
        else deps.log.warn("inbox.partner_failed", fields);
      }
  }
  return isMore;
}

/** The divisor of the number of actions that are tried together, after a try that failed. */
const FEWER = 8;

/**
 * Takes the next actions of a partner over. If PostgreSQL refuses them, or cannot take them in time or in its memory, one of
 * them may be the cause. Fewer are then to be tried, and at last the first alone, which is set aside if it fails, so that
 * none holds up the others for ever.
 */
async function takeOrSetAside(
  deps: InboxDeps,
  partnerId: number,
  tries: Tries,
): Promise<"none" | "some" | "fewer"> {
  const limit = tries.get(partnerId) ?? MAX_ACTIONS;
  const first = limit === 1 ? await queries.firstOfInbox(deps.db, partnerId) : undefined;
  try {
    const count = await takeOfPartner(deps, partnerId, limit);
    if (limit * FEWER < MAX_ACTIONS) tries.set(partnerId, limit * FEWER);
    else tries.delete(partnerId);
    return count > 0 ? "some" : "none";
  } catch (error) {
    if (error instanceof Problem || (isStoreFailure(error) && !isTooMuch(error))) throw error;
    const fields = { partner_id: partnerId, limit, ...errorFields(error) };
    if (limit > 1) {
      deps.log.debug("inbox.split", fields);
      tries.set(partnerId, Math.ceil(limit / FEWER));
      return "fewer";
    }
    deps.log.warn("inbox.action_refused", fields);
    if (first !== undefined)
      await setAside(deps, { partnerId, position: first, isTooMuch: isTooMuch(error) });
    return "some";
  }
}

/** Sets the action at a position aside, without a look at its content, unless it was taken or removed meanwhile. */
function setAside(
  { db }: InboxDeps,
  one: { readonly partnerId: number; readonly position: number; readonly isTooMuch: boolean },
): Promise<void> {
  const action = one.isTooMuch ? "takes the database too long" : "is refused by the database";
  return db.transaction(async (tx) => {
    if (await queries.lockInbox(tx, one.partnerId))
      await queries.rejectInInbox(tx, one.position, { action });
  });
}

/**
 * Takes the next actions of a partner over in one transaction: their removal, and the history and outbox that they
 * become. So each is taken exactly once, wherever the process dies. An action that cannot be taken is set aside.
 */
async function takeOfPartner(deps: InboxDeps, partnerId: number, limit: number): Promise<number> {
  const now = deps.clock.now();
  const round = await deps.writerPool.transaction([partnerId], async (tx) => {
    if (!(await queries.lockInbox(tx, partnerId))) return undefined;
    const rows = await queries.nextOfInbox(tx, partnerId, limit);
    const { taken, rejected } = await judge(deps, tx, rows);
    for (const { position, errors } of rejected) await queries.rejectInInbox(tx, position, errors);
    await queries.deleteFromInbox(
      tx,
      taken.map(({ position }) => position),
    );
    const fresh = (await claimFresh(tx, taken, now)).map(({ placed }) => placed);
    const { wakes, unchanged } = await writeActions(tx, fresh, now);
    const results = {
      recorded: fresh.length - unchanged.size,
      unchanged: unchanged.size,
      duplicate: taken.length - fresh.length,
    };
    return { wakes: await wakes, results, count: rows.length };
  });
  if (round === undefined) return 0;
  deps.countInbox(round.results);
  deps.schedule.wake(round.wakes);
  return round.count;
}

interface Taken {
  readonly position: number;
  readonly serviceId: number;
  readonly id: string;
  readonly placed: PlacedAction;
}

interface Rejected {
  readonly position: number;
  readonly errors: Readonly<Record<string, string>>;
}

/** Separates the actions that can be taken from those that cannot, with the reasons by field. */
async function judge(
  deps: TakingDeps,
  tx: Tx,
  rows: Awaited<ReturnType<typeof queries.nextOfInbox>>,
): Promise<{ readonly taken: readonly Taken[]; readonly rejected: readonly Rejected[] }> {
  const rejected: Rejected[] = [];
  const valid: { position: number; serviceId: number; action: Action }[] = [];
  for (const { position, serviceId, action, isTooLarge } of rows) {
    const errors = isTooLarge ? TOO_LARGE : errorsOf(deps, action);
    if ("errors" in errors) rejected.push({ position, ...errors });
    else valid.push({ position, serviceId, action: errors.action });
  }
  const services = new Map(
    (await queries.servicesById(tx, [...new Set(valid.map((one) => one.serviceId))])).map((one) => [
      one.id,
      one,
    ]),
  );
  const places = await placeActions(
    tx,
    valid.map(({ action }) => action),
  );
  const taken: Taken[] = [];
  for (const [i, { position, serviceId }] of valid.entries()) {
    const placed = places[i];
    if (placed === undefined) continue;
    const service = services.get(serviceId);
    if ("errors" in placed) rejected.push({ position, errors: placed.errors });
    else if (service?.scopes.includes("actions:write") !== true)
      rejected.push({ position, errors: { service_id: "is not a service with actions:write" } });
    else if (service.partnerIds?.includes(placed.partnerId) === false)
      rejected.push({ position, errors: { service_id: "may not act for the partner" } });
    else taken.push({ position, serviceId, id: placed.action.id, placed });
  }
  return { taken, rejected };
}

/** The errors of an action that is not read, because it is from before the limit of its bytes. */
const TOO_LARGE = { errors: { action: `has more than ${MAX_ACTION_BYTES} bytes` } };

function errorsOf(
  deps: TakingDeps,
  value: unknown,
): { readonly action: Action } | { readonly errors: Readonly<Record<string, string>> } {
  const examined = examine(ActionBody, value);
  if ("fieldErrors" in examined) {
    const entries = Object.entries(examined.fieldErrors);
    return { errors: Object.fromEntries(entries.map(([field, [text = ""]]) => [field, text])) };
  }
  const action: Static<typeof ActionBody> = examined.value;
  const found = Object.entries(actionErrors(deps, [action])).flatMap(([field, text]) =>
    text === undefined ? [] : [[field.replace(/^actions\.0\.?/, "") || "action", text] as const],
  );
  return found.length > 0 ? { errors: Object.fromEntries(found) } : { action };
}
