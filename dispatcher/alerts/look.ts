import { ulid } from "ulid";

import type { Db, Tx } from "../../db/client.ts";
import { takeTurn } from "../../db/turn.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import { ALERT_DEFAULTS, type AlertKind } from "../../src/outbox/alert.ts";
import { GroupRunner } from "../store/group-runner.ts";
import { causeOf, type Cause } from "./cause.ts";
import { decideAlerts, type OpenIncident, type Verdict } from "./decide.ts";
import {
  backloggedSubscriptions,
  seeSubscriptions,
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

export interface Raised {
  readonly kind: AlertKind;
  readonly subscriptionId: string;
}

export interface LookListener {
  /** These alerts were written. */
  raised(alerts: readonly Raised[]): void;
  /** There is mail to send. */
  mailed(): void;
}

/** Subscriptions, or partners, that one transaction looks at. */
const AT_ONCE = 100;
/** How long a transaction is left alone that failed because Postgres is out of reach. */
const RETRY_MS = 1_000;

/**
 * Looks at the subscriptions in trouble and writes what there is to tell, each kind once in an incident. The lock that
 * each transaction takes keeps two processes from writing the same. A subscription or a partner for which that fails is
 * quarantined (`GroupRunner`), and the others are told without it.
 */
export class TroubleLook {
  readonly #deps: LookDeps;
  readonly #listener: LookListener;
  readonly #stop: AbortSignal;
  readonly #subscriptions: GroupRunner<string, readonly Raised[] | undefined>;
  readonly #partners: GroupRunner<number, boolean | undefined>;
  /** When the last look began, and the subscriptions in trouble: true if the head of a lane is retried. */
  #last: { readonly at: Date; readonly troubled: ReadonlyMap<string, boolean> };
  /** Another process is looking. */
  #isTaken = false;
  /** Ends with the last transaction of this process. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(deps: LookDeps, listener: LookListener, stop: AbortSignal) {
    this.#deps = deps;
    this.#listener = listener;
    this.#stop = stop;
    this.#last = { at: deps.clock.now(), troubled: new Map() };
    const events = { failed: "alerts.failed", stuck: "alerts.stuck" };
    this.#subscriptions = new GroupRunner(deps, {
      keyOf: (id) => id,
      run: (ids) => this.#raise(ids),
      done: (_, raised) => this.#tell(raised),
      describe: (id) => ({ subscription_id: id }),
      events,
      retryMs: RETRY_MS,
    });
    this.#partners = new GroupRunner(deps, {
      keyOf: (id) => id,
      run: (ids) => this.#mail(ids),
      done: (_, hasMailed) => hasMailed && listener.mailed(),
      describe: (id) => ({ partner_id: id }),
      events,
      retryMs: RETRY_MS,
    });
    stop.addEventListener("abort", () => {
      this.#subscriptions.clear();
      this.#partners.clear();
    });
  }

  /** `everywhere`: also looks at the subscriptions that only have a backlog. */
  async look(everywhere: boolean): Promise<void> {
    const { db, clock } = this.#deps;
    const at = clock.now();
    const troubled = await troubledSubscriptions(db);
    const more = everywhere ? await backloggedSubscriptions(db) : [];
    this.#last = { at, troubled };
    this.#isTaken = false;
    const ids = [...new Set([...troubled.keys(), ...more])];
    // Once without any, too: a mail may have waited for its digest.
    for (let from = 0; from === 0 || from < ids.length; from += AT_ONCE) {
      await this.#subscriptions.run(ids.slice(from, from + AT_ONCE));
      if (this.#isTaken || this.#stop.aborted) return;
      await this.#mailAll();
    }
  }

  async #mailAll(): Promise<void> {
    const ids = await queries.unmailedPartners(this.#deps.db);
    for (let from = 0; from < ids.length && !this.#stop.aborted; from += AT_ONCE)
      await this.#partners.run(ids.slice(from, from + AT_ONCE));
  }

  /** Writes the alerts of these subscriptions; undefined if another process is looking. */
  #raise(ids: readonly string[]): Promise<readonly Raised[] | undefined> {
    const { at, troubled } = this.#last;
    return this.#whileTaken(async (tx) => {
      const found = await seeSubscriptions(tx, ids);
      const partnerIds = [...new Set(found.map((one) => one.partnerId))];
      const settings = await queries.settingsOf(tx, partnerIds);
      const raised: Raised[] = [];
      for (const one of found) {
        const own = settings.get(one.partnerId);
        const isRetrying = troubled.get(one.id) ?? false;
        const { oldestWaitingMinutes } = own ?? ALERT_DEFAULTS;
        const open = openIncidentOf(one);
        const verdict = decideAlerts({ ...one, isRetrying }, open, { at, oldestWaitingMinutes });
        const kinds = await write(tx, { one, open, settings: own, at }, verdict);
        raised.push(...kinds.map((kind) => ({ kind, subscriptionId: one.id })));
      }
      return raised;
    });
  }

  #tell(raised: readonly Raised[] | undefined): void {
    if (raised === undefined) {
      this.#isTaken = true;
      return;
    }
    for (const { kind, subscriptionId } of raised)
      this.#deps.log.info("alert.raised", { kind, subscription_id: subscriptionId });
    this.#listener.raised(raised);
  }

  /** Queues the mails of these partners; answers whether there are any, and undefined if another process is looking. */
  #mail(partnerIds: readonly number[]): Promise<boolean | undefined> {
    const { at } = this.#last;
    return this.#whileTaken((tx) => mailAlerts(tx, this.#deps, { partnerIds, at }));
  }

  /**
   * Runs a transaction that holds the lock; undefined if another process has it. Those of this process take turns: the
   * retry of a quarantined subscription would look like another process to the look beside it.
   */
  #whileTaken<T>(work: (tx: Tx) => Promise<T>): Promise<T | undefined> {
    const transact = () =>
      this.#deps.db.transaction(async (tx) =>
        (await takeTurn(tx, "alerts")) ? work(tx) : undefined,
      );
    const mine = this.#turn.then(transact);
    this.#turn = mine.catch(() => {});
    return mine;
  }
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
