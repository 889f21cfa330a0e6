import { ulid } from "ulid";

import type { Tx } from "../../db/client.ts";
import { waitForTurn } from "../../db/server.ts";
import { isoInstant } from "../../src/lib/clock.ts";
import { ALERT_DEFAULTS, type AlertKind } from "../../src/outbox/alert.ts";
import { ATTEMPTS } from "../actor/decide.ts";
import { decideAlerts, type OpenIncident, type Verdict } from "./decide.ts";
import { seeSubscriptions, type SeenRow } from "./look-queries.ts";
import * as queries from "./queries.ts";
import type { Failure, SettingsRow } from "./queries.ts";

/** What was known when an alert was raised; a row of `alerts` keeps it, mail and POST say it. */
export interface Cause {
  readonly consecutive_failure_count?: number;
  readonly first_failure?: ToldFailure | null;
  readonly last_failure?: ToldFailure | null;
  readonly oldest_waiting_since?: string | null;
}

interface ToldFailure {
  readonly at: string;
  readonly event_id: string;
  readonly event: string;
  readonly status_code: number | null;
  readonly error_code: string | null;
}

/** Of the present run of permanent failures, or of the retries where there is none. */
async function causeOf(
  tx: Tx,
  subscription: { readonly id: string; readonly failures: number; readonly oldestAt: Date | null },
): Promise<Cause> {
  const { id, failures, oldestAt } = subscription;
  const retries = await queries.lastFailures(tx, id, { outcome: "retry", limit: ATTEMPTS });
  const [retry] = retries;
  const run =
    failures === 0
      ? []
      : await queries.lastFailures(tx, id, { outcome: "failed", limit: failures });
  const last = [retry, run[0]].filter((one) => one !== undefined).toSorted(newestFirst)[0];
  return {
    consecutive_failure_count: failures,
    first_failure: toldFailure(
      run.at(-1) ?? retries.findLast(({ eventId }) => eventId === retry?.eventId),
    ),
    last_failure: toldFailure(last),
    oldest_waiting_since: oldestAt === null ? null : isoInstant(oldestAt),
  };
}

const newestFirst = (a: Failure, b: Failure) => b.at.getTime() - a.at.getTime();

function toldFailure(failure: Failure | undefined): ToldFailure | null {
  if (failure === undefined) return null;
  const { at, eventId, event, statusCode, errorCode } = failure;
  return {
    at: isoInstant(at),
    event_id: eventId,
    event,
    status_code: statusCode,
    error_code: errorCode,
  };
}

interface Subject {
  readonly one: SeenRow;
  readonly open: OpenIncident | undefined;
  readonly settings: SettingsRow | undefined;
  readonly at: Date;
}

export interface Raised {
  readonly kind: AlertKind;
  readonly subscriptionId: string;
  readonly partnerId: number;
}

/** Writes what there is to tell of these subscriptions; answers the alerts. */
export async function raiseAlerts(
  tx: Tx,
  ids: readonly string[],
  { at, retrying }: { readonly at: Date; readonly retrying: ReadonlySet<string> },
): Promise<Raised[]> {
  await waitForTurn(tx, "alerts");
  const found = await seeSubscriptions(tx, ids);
  const settings = await queries.settingsOf(tx, [...new Set(found.map((one) => one.partnerId))]);
  const raised: Raised[] = [];
  for (const one of found) {
    const { id, partnerId, incidentId, openedAt, incidentDisabledAt, incidentFailures, kinds } =
      one;
    const own = settings.get(partnerId);
    const { oldestWaitingMinutes } = own ?? ALERT_DEFAULTS;
    const open =
      incidentId === null || openedAt === null
        ? undefined
        : {
            id: incidentId,
            openedAt,
            disabledAt: incidentDisabledAt,
            failures: incidentFailures ?? 0,
            kinds,
          };
    const condition = { ...one, isRetrying: retrying.has(id) };
    const verdict = decideAlerts(condition, open, { at, oldestWaitingMinutes });
    const written = await write(tx, { one, open, settings: own, at }, verdict);
    raised.push(...written.map((kind) => ({ kind, subscriptionId: id, partnerId })));
  }
  return raised;
}

/** Writes the verdict; answers what was raised. */
async function write(tx: Tx, subject: Subject, verdict: Verdict): Promise<readonly AlertKind[]> {
  const { one, open, at } = subject;
  const { failures, disabledAt } = one;
  const { ended, missed = [], begins, raised } = verdict;
  const wasTold = one.isTold ?? false;
  const isRecovered = ended === "recovered" && wasTold;
  if (raised.length === 0 && ended === undefined && begins === undefined) {
    const hasChanged =
      open !== undefined &&
      (open.failures !== failures || open.disabledAt?.getTime() !== disabledAt?.getTime());
    if (hasChanged)
      await queries.updateIncident(tx, open.id, { failures, disabledAt, isTold: wasTold });
    return [];
  }
  const cause = raised.length > 0 || isRecovered ? await causeOf(tx, one) : {};
  if (open !== undefined && missed.length > 0) {
    const then = await causeOf(tx, { ...one, failures: open.failures });
    await raise(tx, subject, { incidentId: open.id, kinds: missed, cause: then });
  }
  if (open !== undefined && ended !== undefined) {
    if (isRecovered) await raise(tx, subject, { incidentId: open.id, kinds: ["recovered"], cause });
    await queries.updateIncident(tx, open.id, { endedAt: at, endedBy: ended });
  }
  const tells = [...missed, ...raised].some((kind) => isWanted(subject.settings, kind));
  const incidentId = begins === undefined ? open?.id : ulid(at.getTime());
  const told = {
    failures,
    disabledAt,
    isTold: tells || (wasTold && (begins?.follows ?? ended === undefined)),
  };
  if (incidentId !== undefined && begins !== undefined)
    await queries.insertIncident(tx, {
      ...told,
      id: incidentId,
      subscriptionId: one.id,
      partnerId: one.partnerId,
      openedAt: begins.since,
    });
  else if (incidentId !== undefined && ended === undefined)
    await queries.updateIncident(tx, incidentId, told);
  if (incidentId !== undefined) await raise(tx, subject, { incidentId, kinds: raised, cause });
  return [...missed, ...(isRecovered ? (["recovered"] as const) : []), ...raised];
}

async function raise(
  tx: Tx,
  { one, settings, at }: Subject,
  told: {
    readonly incidentId: string;
    readonly kinds: readonly AlertKind[];
    readonly cause: Cause;
  },
): Promise<void> {
  await queries.insertAlerts(
    tx,
    told.kinds.map((kind) => {
      const wanted = isWanted(settings, kind);
      const isPosted = wanted && settings?.webhookUrl != null;
      return {
        id: ulid(at.getTime()),
        incidentId: told.incidentId,
        subscriptionId: one.id,
        partnerId: one.partnerId,
        kind,
        raisedAt: at,
        cause: told.cause,
        mailState: wanted ? "pending" : "none",
        webhookState: isPosted ? "queued" : "none",
        webhookDueAt: isPosted ? at : null,
      } as const;
    }),
  );
}

function isWanted(settings: SettingsRow | undefined, kind: AlertKind): boolean {
  return settings === undefined || settings.kinds.includes(kind);
}
