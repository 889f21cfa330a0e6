import type { Static } from "@sinclair/typebox";

import type { Tx } from "../../db/client.ts";
import { isLockTimeout, isStoreFailure, isTooMuch } from "../../db/errors.ts";
import { examine } from "../http/fields.ts";
import type { CountInbox } from "../http/metrics.ts";
import { toFieldErrors } from "../http/rules.ts";
import { errorFields } from "../lib/log.ts";
import { type FieldErrors, Problem, unavailable } from "../lib/problem.ts";
import { servicesById } from "../services/queries.ts";
import { decideRequests } from "./admit.ts";
import type { Decision, ServiceRequest } from "./change.ts";
import type { IntakeDeps } from "./group-commit.ts";
import * as queries from "./queries/inbox.ts";
import { actionErrors, serviceRequest } from "./service-input.ts";
import { type Action, ActionBody, MAX_ACTIONS } from "./service-model.ts";
import { MAX_ACTION_BYTES } from "./sizes.ts";
import { readState } from "./state.ts";
import { Collision, wakeAfter, writeAll } from "./write.ts";

interface InboxDeps extends Omit<IntakeDeps, "traces"> {
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
        const fields = { partner_id: partnerId, ...errorFields(error) };
        if (isBusy(error)) deps.log.debug("inbox.partner_busy", fields);
        else deps.log.warn("inbox.partner_failed", fields);
      }
  }
  return isMore;
}

/** Whether another transaction holds or writes what this one needs, which says nothing about the actions. */
const isBusy = (error: unknown): boolean =>
  error instanceof Problem || error instanceof Collision || isLockTimeout(error);

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
    if (isBusy(error) || (isStoreFailure(error) && !isTooMuch(error))) throw error;
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
    const { requests, rejected } = await readRows(deps, tx, rows);
    const locks = { partners: [partnerId], wait: "rows and sequences" } as const;
    const given = requests.map(({ request }) => request);
    const decided = decideRequests(given, await readState(tx, given, locks), now);
    const results = { recorded: 0, unchanged: 0, duplicate: 0 };
    const taken = requests.flatMap(({ position }, i) => {
      const decision = decided.decisions[i];
      // A row that has to wait would be overtaken by those behind it, so none is taken now.
      if (decision === undefined || decision.kind === "deferred") throw unavailable();
      if (decision.kind !== "accepted") {
        rejected.push({ position, errors: errorsOf(decision) });
        return [];
      }
      results.recorded += decision.accepted - decision.unchanged;
      results.unchanged += decision.unchanged;
      results.duplicate += 1 - decision.accepted;
      return [position];
    });
    for (const { position, errors } of rejected) await queries.rejectInInbox(tx, position, errors);
    await queries.deleteFromInbox(tx, taken);
    return { written: await writeAll(tx, deps, decided, now), results, count: rows.length };
  });
  if (round === undefined) return 0;
  deps.countInbox(round.results);
  wakeAfter(deps.schedule, round.written);
  return round.count;
}

/** An action of the inbox as a request of one action. */
interface RowRequest {
  readonly position: number;
  readonly request: ServiceRequest;
}

type RowErrors = Readonly<Record<string, string>>;

interface Rejected {
  readonly position: number;
  readonly errors: RowErrors;
}

/** Reads rows as requests. Rows that cannot be read are returned with the reasons by field. */
async function readRows(
  { clock }: Pick<InboxDeps, "clock">,
  tx: Tx,
  rows: Awaited<ReturnType<typeof queries.nextOfInbox>>,
): Promise<{ readonly requests: readonly RowRequest[]; readonly rejected: Rejected[] }> {
  const services = new Map(
    (await servicesById(tx, [...new Set(rows.map((one) => one.serviceId))])).map((one) => [
      one.id,
      one,
    ]),
  );
  const requests: RowRequest[] = [];
  const rejected: Rejected[] = [];
  for (const { position, serviceId, action: stored, isTooLarge } of rows) {
    const read = isTooLarge ? TOO_LARGE : readAction({ clock }, stored);
    const service = services.get(serviceId);
    if ("errors" in read) rejected.push({ position, ...read });
    else if (service?.scopes.includes("actions:write") !== true)
      rejected.push({ position, errors: { service_id: "is not a service with actions:write" } });
    else {
      const by = { serviceId, actsForPartners: service.partnerIds };
      requests.push({ position, request: serviceRequest(by, [read.action], clock.now()) });
    }
  }
  return { requests, rejected };
}

/** The errors of an action that is not read, because it is from before the limit of its bytes. */
const TOO_LARGE = { errors: { action: `has more than ${MAX_ACTION_BYTES} bytes` } };

function readAction(
  deps: Pick<InboxDeps, "clock">,
  stored: unknown,
): { readonly action: Action } | { readonly errors: RowErrors } {
  const examined = examine(ActionBody, stored);
  if ("fieldErrors" in examined) return { errors: firstOf(examined.fieldErrors) };
  const action: Static<typeof ActionBody> = examined.value;
  const errors = ofAction(toFieldErrors(actionErrors(deps, [action])));
  return Object.keys(errors).length > 0 ? { errors } : { action };
}

/** Returns why an action cannot be taken. */
const errorsOf = (decision: Exclude<Decision, { kind: "accepted" | "deferred" }>): RowErrors =>
  decision.kind === "foreign"
    ? { service_id: "may not act for the partner" }
    : ofAction(decision.errors ?? {});

/** Returns the errors of the only action of a request by the fields of the action. */
const ofAction = (errors: FieldErrors): RowErrors =>
  Object.fromEntries(
    Object.entries(firstOf(errors)).map(([field, text]) => [
      field.replace(/^actions\.0\.?/, "") || "action",
      text,
    ]),
  );

const firstOf = (errors: FieldErrors): RowErrors =>
  Object.fromEntries(Object.entries(errors).map(([field, [text = ""]]) => [field, text]));
