import type { Db, RawDb } from "../../db/client.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import type { SecretBox } from "../../src/lib/secret-box.ts";
import { MAIL_WAKE } from "../../src/outbox/mail.ts";
import type { Waker } from "../../src/outbox/schedule.ts";
import type { Job } from "../maintenance/loop.ts";
import { failureOf } from "../store/group-runner.ts";
import { raiseAlerts, type Raised } from "./incidents.ts";
import { backloggedSubscriptions, findTrouble } from "./look-queries.ts";
import { mailAlerts } from "./mail.ts";
import { postAlerts, type PostDeps } from "./post.ts";

export interface LookDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly box: SecretBox;
  readonly config: { readonly serverRoot: string };
  readonly schedule: Waker;
  /** Told of each alert that was written. */
  readonly raised: (alert: Raised) => void;
}

const LOOK_S = 5;
const MINUTE_MS = 60_000;
/** Subscriptions, or partners, that one transaction looks at. */
const AT_ONCE = 100;
/** How long a subscription or a partner is left alone that Postgres has refused. */
const STUCK_MS = 30_000;

/**
 * Looks at the subscriptions in trouble and writes what there is to tell, each kind once in an incident. The lock that
 * each transaction takes keeps two processes from writing the same.
 */
export class TroubleLook {
  readonly #deps: LookDeps;
  readonly #stop: AbortSignal;
  /** Until when Postgres is not asked again about what it has refused, by the monotonic clock. */
  readonly #stuckUntilMs = new Map<string, number>();

  constructor(deps: LookDeps, stop: AbortSignal) {
    this.#deps = deps;
    this.#stop = stop;
  }

  /** `everywhere`: also looks at the subscriptions that only have a backlog. */
  async look(
    everywhere: boolean,
  ): Promise<{ readonly raised: number; readonly isPostDue: boolean }> {
    const { db, clock, log, schedule } = this.#deps;
    const at = clock.now();
    const { isPostDue, troubled, unmailed } = await findTrouble(db, at);
    const more = everywhere ? await backloggedSubscriptions(db) : [];
    const retrying = new Set(troubled.filter((one) => one.isRetrying).map(({ id }) => id));
    const raised: Raised[] = [];
    await this.#inGroups(
      "subscription_id",
      [...troubled.map(({ id }) => id), ...more],
      async (ids) => {
        const made = await db.transaction((tx) => raiseAlerts(tx, ids, { at, retrying }));
        for (const { kind, subscriptionId } of made)
          log.info("alert.raised", { kind, subscription_id: subscriptionId });
        made.forEach(this.#deps.raised);
        raised.push(...made);
      },
    );
    // A mail of an earlier look may have waited for its digest.
    const partnerIds = [...unmailed, ...raised.map(({ partnerId }) => partnerId)];
    await this.#inGroups("partner_id", partnerIds, async (ids) => {
      if (await db.transaction((tx) => mailAlerts(tx, this.#deps, { partnerIds: ids, at })))
        void schedule.wake([MAIL_WAKE]);
    });
    return { raised: raised.length, isPostDue: isPostDue || raised.length > 0 };
  }

  /**
   * Works in groups. One that fails is halved until a single item fails, which keeps none of the others. If Postgres has
   * refused it, it is tried again alone after `STUCK_MS`.
   */
  async #inGroups<T extends string | number>(
    field: string,
    items: readonly T[],
    work: (group: readonly T[]) => Promise<void>,
  ): Promise<void> {
    const { clock, log } = this.#deps;
    const stuckUntilMs = (item: T) => this.#stuckUntilMs.get(`${field} ${item}`);
    const each = [...new Set(items)];
    const free = each.filter((item) => stuckUntilMs(item) === undefined);
    const isDue = (item: T) => (stuckUntilMs(item) ?? Infinity) <= clock.monotonicMs();
    const groups = [...inChunks(free, AT_ONCE), ...inChunks(each.filter(isDue), 1)];
    for (let group = groups.shift(); group && !this.#stop.aborted; group = groups.shift())
      try {
        await work(group);
        if (group.length === 1) this.#stuckUntilMs.delete(`${field} ${group[0]}`);
      } catch (error) {
        const failure = failureOf(error);
        if (failure === "store") throw error;
        log.warn("alerts.failed", { items: group.length, failure, ...errorFields(error) });
        if (group.length > 1) groups.push(...inChunks(group, Math.ceil(group.length / 2)));
        else if (failure === "refused") {
          this.#stuckUntilMs.set(`${field} ${group[0]}`, clock.monotonicMs() + STUCK_MS);
          log.error("alerts.stuck", { [field]: group[0], ...errorFields(error) });
        }
      }
  }
}

function inChunks<T>(items: readonly T[], size: number): (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}

const minuteOf = (at: Date | null) => Math.floor((at?.getTime() ?? 0) / MINUTE_MS);

/** The job that raises alerts. The POSTs about them go on while the next looks are made: no look waits for a receiver. */
export function alertsJob(
  deps: LookDeps & PostDeps & { readonly db: RawDb },
  stop: AbortSignal,
): Job {
  const { db, clock, log } = deps;
  const trouble = new TroubleLook(deps, stop);
  let posting: Promise<void> | undefined;
  return {
    name: "alerts",
    paceS: LOOK_S,
    anyClock: true,
    db,
    async run({ previousAt }) {
      const isFirstOfMinute = minuteOf(previousAt) !== minuteOf(clock.now());
      const { raised, isPostDue } = await trouble.look(isFirstOfMinute);
      if (isPostDue)
        posting ??= postAlerts(deps, stop)
          .catch((error: unknown) => log.warn("alerts.failed", errorFields(error)))
          .finally(() => (posting = undefined));
      return { rows: raised };
    },
    drain: () => posting,
  };
}
