import { ulid } from "ulid";

import type { Db, Tx } from "../../db/client.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import { ALERT_DEFAULTS, type AlertKind } from "../../src/outbox/alert.ts";
import { causeOf, type Cause } from "./cause.ts";
import { decideAlerts, type OpenIncident, type Verdict } from "./decide.ts";
import {
  backloggedSubscriptions,
  seeSubscriptions,
  takeLook,
  troubledSubscriptions,
  type SeenRow,
} from "./look-queries.ts";
import { mailAlerts, type MailDeps } from "./mail.ts";
import * as queries from "./queries.ts";
import type { SettingsRow } from "./queries.ts";

export interface LookDeps extends MailDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}

/** Alerts that a look has raised, and whether there is mail to send. */
interface Looked {
  readonly raised: readonly { readonly kind: AlertKind; readonly subscriptionId: string }[];
  readonly hasMailed: boolean;
}

/**
 * Looks at the subscriptions in trouble and writes what there is to tell, each kind once in an incident: all of it in
 * one transaction, which one process makes at a time. `everywhere`: also at those that only have a backlog.
 */
export async function lookForTrouble(deps: LookDeps, everywhere: boolean): Promise<Looked> {
  const at = deps.clock.now();
  const looked = await deps.db.transaction(async (tx) => {
    if (!(await takeLook(tx))) return { raised: [], hasMailed: false };
    const troubled = await troubledSubscriptions(tx);
    const more = everywhere ? await backloggedSubscriptions(tx) : [];
    const ids = [...new Set([...troubled.keys(), ...more])];
    const found = ids.length === 0 ? [] : await seeSubscriptions(tx, ids);
    const settings = await queries.settingsOf(tx, [...new Set(found.map((one) => one.partnerId))]);
    const raised: { kind: AlertKind; subscriptionId: string }[] = [];
    for (const one of found) {
      const own = settings.get(one.partnerId);
      const isRetrying = troubled.get(one.id) ?? false;
      const { oldestWaitingMinutes } = own ?? ALERT_DEFAULTS;
      const open = openIncidentOf(one);
      const verdict = decideAlerts({ ...one, isRetrying }, open, { at, oldestWaitingMinutes });
      const kinds = await write(tx, { one, open, settings: own, at }, verdict);
      raised.push(...kinds.map((kind) => ({ kind, subscriptionId: one.id })));
    }
    return { raised, hasMailed: await mailAlerts(tx, deps, at) };
  });
  for (const { kind, subscriptionId } of looked.raised)
    deps.log.info("alert.raised", { kind, subscription_id: subscriptionId });
  return looked;
}

function openIncidentOf(one: SeenRow): OpenIncident | undefined {
  const { incidentId: id, openedAt, incidentDisabledAt: disabledAt, incidentFailures, kinds } = one;
  return id === null || openedAt === null
    ? undefined
    : { id, openedAt, disabledAt, failures: incidentFailures ?? 0, kinds };
}

interface Subject {
  readonly one: SeenRow;
  readonly open: OpenIncident | undefined;
  readonly settings: SettingsRow | undefined;
  readonly at: Date;
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
    await queries.endIncident(tx, open.id, { endedAt: at, endedBy: ended });
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
