import { ulid } from "ulid";

import type { Tx } from "../../db/client.ts";
import { boundLockWait, waitForTurn } from "../../db/server.ts";
import { isoInstant } from "../../src/lib/clock.ts";
import { ALERT_DEFAULTS, type AlertKind } from "../../src/outbox/alert.ts";
import { decideAlerts } from "./decide.ts";
import * as queries from "./queries.ts";
import type { Failure, NewAlert, SeenRow, Troubled } from "./queries.ts";

/** The facts at the time when an alert was raised. A row of `alerts` keeps them for the mail and the POST. */
export type Cause = Partial<Awaited<ReturnType<typeof causeOf>>>;

/**
 * Describes the cause of an alert as the API shows it (contract 6.17): the first permanent failure in a row, or the
 * first failed attempt since the trouble began; and the last failed attempt since then.
 */
async function causeOf(
  tx: Tx,
  { id, failures, oldestAt }: Pick<SeenRow, "id" | "failures" | "oldestAt">,
  since: Date | undefined,
) {
  const { first, last } = since === undefined ? {} : await queries.failuresSince(tx, id, since);
  const run = failures > 0 ? await queries.firstOfRun(tx, id, failures) : undefined;
  return {
    consecutive_failure_count: failures,
    first_failure: reportFailure(run ?? first),
    last_failure: reportFailure(last),
    oldest_waiting_since: oldestAt && isoInstant(oldestAt),
  };
}

function reportFailure(failure: Failure | undefined) {
  if (failure === undefined) return null;
  const { id: _, at, ...reported } = failure;
  return { at: isoInstant(at), ...reported };
}

export type Raised = Pick<NewAlert, "kind" | "subscriptionId" | "partnerId">;

export interface RaiseDeps {
  /**
   * Finds the time at which the present trouble of a subscription began, which is the beginning of its open incident.
   */
  readonly troubleSince: (tx: Tx, one: Troubled) => Promise<Date | undefined>;
}

/**
 * The longest wait for a locked row in milliseconds. A subscription that is locked for longer is checked in the next
 * run, so that the other subscriptions do not wait for it.
 */
const LOCK_MS = 100;

/** Raises the alerts that these subscriptions need and returns them. */
export async function raiseAlerts(
  tx: Tx,
  deps: RaiseDeps,
  { ids, at }: { readonly ids: readonly string[]; readonly at: Date },
): Promise<Raised[]> {
  await waitForTurn(tx, "alerts");
  await boundLockWait(tx, LOCK_MS);
  const raised: Raised[] = [];
  for (const one of await queries.seeSubscriptions(tx, ids))
    raised.push(...(await raise(tx, deps, one, at)));
  return raised;
}

/** Decides about a subscription, writes its incident and alerts, and returns the raised alerts. */
async function raise(tx: Tx, { troubleSince }: RaiseDeps, one: SeenRow, at: Date) {
  const { id: subscriptionId, partnerId, failures, disabledAt, disabledReason } = one;
  const [open] = one.open;
  const [settings] = one.settings;
  const { oldestWaitingMinutes } = settings ?? ALERT_DEFAULTS;
  const decision = decideAlerts(one, open, { at, oldestWaitingMinutes });
  const { ended, closing = [], begins, raised } = decision;
  const isWanted = (kind: AlertKind) => settings === undefined || settings.kinds.includes(kind);
  const isReported = open?.isTold || closing.some(isWanted);
  const isTold = raised.some(isWanted) || (isReported && (begins?.follows ?? true));
  const incidentId = begins === undefined ? (open?.id ?? "") : ulid(at.getTime());
  const hasChanged =
    open?.failures !== failures ||
    open.isTold !== isTold ||
    open.disabledAt?.getTime() !== disabledAt?.getTime();
  const now = { failures, disabledAt, isTold };
  const known = { consecutiveFailureCount: failures, disabledAt, disabledReason };
  const isWritten = begins !== undefined || (open !== undefined && hasChanged);
  const since =
    isWritten || raised.length > 0
      ? await troubleSince(tx, { id: subscriptionId, ...known })
      : undefined;
  if (open !== undefined && ended !== undefined)
    await queries.updateIncident(tx, open.id, { endedAt: at, endedBy: ended });
  else if (open !== undefined && hasChanged)
    await queries.updateIncident(tx, open.id, {
      ...now,
      beganAt: since ?? open.beganAt,
    });
  if (begins !== undefined)
    await queries.insertIncident(tx, {
      ...now,
      id: incidentId,
      subscriptionId,
      partnerId,
      openedAt: begins.since,
      // An incident that follows an enable keeps the beginning of the one before it.
      beganAt: begins.follows ? open?.beganAt : (since ?? begins.since),
    });
  const make = async (
    kinds: readonly AlertKind[],
    id: string,
    { failures: counted, since: from }: { failures: number; since: Date | undefined },
  ) => {
    const cause = kinds.length === 0 ? {} : await causeOf(tx, { ...one, failures: counted }, from);
    return kinds.map((kind): NewAlert => {
      const isMailed = isWanted(kind);
      const isPosted = isMailed && settings?.webhookUrl != null;
      return {
        id: ulid(at.getTime()),
        kind,
        incidentId: id,
        subscriptionId,
        partnerId,
        raisedAt: at,
        cause,
        mailState: isMailed ? "pending" : "none",
        webhookState: isPosted ? "queued" : "none",
        webhookDueAt: isPosted ? at : null,
      };
    });
  };
  // An incident that an enable has ended is reported with the number of failures from before the enable.
  const before = ended === "enabled" ? (open?.failures ?? 0) : failures;
  const closed = { failures: before, since: open?.beganAt ?? open?.openedAt };
  const alerts = [
    ...(await make(closing, open?.id ?? "", closed)),
    ...(await make(raised, incidentId, { failures, since })),
  ];
  await queries.insertAlerts(tx, alerts);
  return alerts;
}
