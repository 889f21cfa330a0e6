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
  /** Adds processed actions to the metrics. */
  readonly countInbox: CountInbox;
}

/** Time in ms before an empty inbox is read again. An action is therefore processed within a second. */
const PAUSE_MS = 800;

/** Processes the actions of the inbox until the process stops. Several processes share the work by partner. */
export async function followInbox(deps: InboxDeps, stop: AbortSignal): Promise<void> {
  const tries: TrySizes = new Map();
  while (!stop.aborted) {
    const isMore = await processInbox(deps, tries).catch((error: unknown) => {
      deps.log.warn("inbox.failed", errorFields(error));
      return false;
    });
    if (!isMore) await deps.clock.sleep(PAUSE_MS, stop);
  }
}

/** Maps each partner whose last try failed to the number of actions that its next try contains. */
type TrySizes = Map<number, number>;

/**
 * Processes the next actions of each partner (contract 9.8). Returns whether more actions may be waiting. If the
 * actions of a partner fail, the failure is logged, and the next pass tries them again. If a partner's next try must
 * contain fewer actions, the other partners have their turn in between.
 */
export async function processInbox(deps: InboxDeps, tries: TrySizes = new Map()): Promise<boolean> {
  let isMore = false;
  for (let isSplit = true; isSplit;) {
    isSplit = false;
    for (const partnerId of await queries.inboxPartners(deps.db))
      try {
        const result = await processOrSetAside(deps, partnerId, tries);
        if (result === "fewer") isSplit = true;
        if (result !== "none") isMore = true;
      } catch (error) {
        if (!isBusy(error))
          deps.log.warn("inbox.partner_failed", { partner_id: partnerId, ...errorFields(error) });
      }
  }
  return isMore;
}

/**
 * Returns whether the failure is only a lock or a write by another transaction, so that the actions did not cause it.
 */
const isBusy = (error: unknown): boolean =>
  error instanceof Problem || error instanceof Collision || isLockTimeout(error);

/** Divisor of the number of actions per try, after a try that failed. */
const TRY_DIVISOR = 8;

/**
 * Processes the next actions of a partner. If PostgreSQL refuses them, or cannot process them within its limits of time
 * and memory, one of them may be the cause. The next tries contain fewer and fewer actions. An action that fails alone
 * is rejected, so that it does not block the others forever.
 */
async function processOrSetAside(
  deps: InboxDeps,
  partnerId: number,
  tries: TrySizes,
): Promise<"none" | "some" | "fewer"> {
  const limit = tries.get(partnerId) ?? MAX_ACTIONS;
  const first = limit === 1 ? await queries.firstOfInbox(deps.db, partnerId) : undefined;
  try {
    const count = await processPartner(deps, partnerId, limit);
    if (limit * TRY_DIVISOR < MAX_ACTIONS) tries.set(partnerId, limit * TRY_DIVISOR);
    else tries.delete(partnerId);
    return count > 0 ? "some" : "none";
  } catch (error) {
    if (isBusy(error) || (isStoreFailure(error) && !isTooMuch(error))) throw error;
    if (limit > 1) {
      tries.set(partnerId, Math.ceil(limit / TRY_DIVISOR));
      return "fewer";
    }
    deps.log.warn("inbox.action_refused", { partner_id: partnerId, ...errorFields(error) });
    if (first !== undefined)
      await setAside(deps, { partnerId, position: first, isTooMuch: isTooMuch(error) });
    return "some";
  }
}

/**
 * Sets the state of the action at a position to `rejected`, without reading its content, unless it was processed or
 * removed after it failed.
 */
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
 * Processes the next actions of a partner. One transaction removes them from the inbox and writes the history and the
 * outbox, so each action is processed exactly once, even if the process dies. The state of an invalid action is set to
 * `rejected`.
 */
async function processPartner(deps: InboxDeps, partnerId: number, limit: number): Promise<number> {
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
      // Later actions must not overtake a deferred one, so no action is processed now.
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

/** A row of the inbox, as a request with one action. */
interface RowRequest {
  readonly position: number;
  readonly request: ServiceRequest;
}

type RowErrors = Readonly<Record<string, string>>;

interface RejectedRow {
  readonly position: number;
  readonly errors: RowErrors;
}

/** Converts rows to requests. Rows that are invalid are returned with their errors by field. */
async function readRows(
  { clock }: Pick<InboxDeps, "clock">,
  tx: Tx,
  rows: Awaited<ReturnType<typeof queries.nextOfInbox>>,
): Promise<{ readonly requests: readonly RowRequest[]; readonly rejected: RejectedRow[] }> {
  const services = new Map(
    (await servicesById(tx, [...new Set(rows.map((one) => one.serviceId))])).map((one) => [
      one.id,
      one,
    ]),
  );
  const requests: RowRequest[] = [];
  const rejected: RejectedRow[] = [];
  for (const { position, serviceId, action: stored, isTooLarge } of rows) {
    const read = isTooLarge ? TOO_LARGE_ERRORS : readAction({ clock }, stored);
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

/** The errors of an action that is not read, because it was stored before its size was limited. */
const TOO_LARGE_ERRORS = { errors: { action: `has more than ${MAX_ACTION_BYTES} bytes` } };

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

/** Returns the reasons why an action was not accepted, by field. */
const errorsOf = (decision: Exclude<Decision, { kind: "accepted" | "deferred" }>): RowErrors =>
  decision.kind === "foreign"
    ? { service_id: "may not act for the partner" }
    : ofAction(decision.errors ?? {});

/** Returns the errors of a request with one action, by the fields of that action instead of those of the request. */
const ofAction = (errors: FieldErrors): RowErrors =>
  Object.fromEntries(
    Object.entries(firstOf(errors)).map(([field, text]) => [
      field.replace(/^actions\.0\.?/, "") || "action",
      text,
    ]),
  );

const firstOf = (errors: FieldErrors): RowErrors =>
  Object.fromEntries(Object.entries(errors).map(([field, [text = ""]]) => [field, text]));
