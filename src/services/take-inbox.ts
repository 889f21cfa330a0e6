import type { Static } from "@sinclair/typebox";

import type { Tx } from "../../db/client.ts";
import { isLockTimeout, isStoreFailure } from "../../db/errors.ts";
import { examine } from "../http/fields.ts";
import { errorFields, type Log } from "../lib/log.ts";
import type { CountInbox } from "../http/metrics.ts";
import { Problem } from "../lib/problem.ts";
import { type Action, ActionBody, MAX_ACTIONS } from "./model.ts";
import { writeActions } from "./apply-actions.ts";
import * as queries from "./queries.ts";
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

/** The pause in milliseconds before the inbox is read again once it is empty. */
const PAUSE_MS = 500;

/** Takes actions of the inbox over until the process stops. Several processes share the work by partner. */
export async function followInbox(deps: InboxDeps, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const isMore = await takeInbox(deps).catch((error: unknown) => {
      deps.log.warn("inbox.failed", errorFields(error));
      return false;
    });
    if (!isMore) await deps.clock.sleep(PAUSE_MS, stop);
  }
}

/**
 * Takes the next actions of each partner over (contract 9.8). Returns whether more may wait. A partner that fails is left
 * for the next round, and the others go on.
 */
export async function takeInbox(deps: InboxDeps): Promise<boolean> {
  let isMore = false;
  for (const partnerId of await queries.inboxPartners(deps.db))
    try {
      isMore = (await takeOrSetAside(deps, partnerId)) || isMore;
    } catch (error) {
      const isBusy = isLockTimeout(error) || error instanceof Problem;
      const fields = { partner_id: partnerId, ...errorFields(error) };
      if (isBusy) deps.log.debug("inbox.partner_busy", fields);
      else deps.log.warn("inbox.partner_failed", fields);
    }
  return isMore;
}

/**
 * Takes the next actions of a partner over. If PostgreSQL refuses them, one of them is the cause: the first is then taken
 * alone, and set aside if it is refused again, so that none holds up the others for ever.
 */
async function takeOrSetAside(deps: InboxDeps, partnerId: number): Promise<boolean> {
  try {
    return await takeOfPartner(deps, partnerId, MAX_ACTIONS);
  } catch (error) {
    if (isStoreFailure(error) || error instanceof Problem) throw error;
  }
  try {
    await takeOfPartner(deps, partnerId, 1);
  } catch (error) {
    if (isStoreFailure(error) || error instanceof Problem) throw error;
    deps.log.warn("inbox.action_refused", { partner_id: partnerId, ...errorFields(error) });
    await setFirstAside(deps, partnerId);
  }
  return true;
}

function setFirstAside({ db }: InboxDeps, partnerId: number): Promise<void> {
  return db.transaction(async (tx) => {
    if (!(await queries.lockInbox(tx, partnerId))) return;
    const errors = { action: "is refused by the database" };
    for (const { position } of await queries.nextOfInbox(tx, partnerId, 1))
      await queries.rejectInInbox(tx, position, errors);
  });
}

/**
 * Takes the next actions of a partner over in one transaction: their removal, and the history and outbox that they
 * become. So each is taken exactly once, wherever the process dies. An action that cannot be taken is set aside.
 */
async function takeOfPartner(deps: InboxDeps, partnerId: number, limit: number): Promise<boolean> {
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
    return { wakes, results, isFull: rows.length === limit };
  });
  if (round === undefined) return false;
  deps.countInbox(round.results);
  await deps.schedule.wake(round.wakes);
  return round.isFull;
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
  for (const { position, serviceId, action } of rows) {
    const errors = errorsOf(deps, action);
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
    text === undefined ? [] : [[field.replace("actions.0.", ""), text] as const],
  );
  return found.length > 0 ? { errors: Object.fromEntries(found) } : { action };
}
