import type { RawDb } from "../../db/client.ts";
import { errorFields } from "../../src/lib/log.ts";
import { MAIL_WAKE } from "../../src/outbox/mail.ts";
import type { Waker } from "../../src/outbox/schedule.ts";
import type { Job } from "../maintenance/loop.ts";
import { failureOf } from "../store/group-runner.ts";
import { raiseAlerts, type Raised } from "./incidents.ts";
import { mailAlerts } from "./mail.ts";
import { postAlerts, type PostDeps } from "./post.ts";
import { findTrouble } from "./queries.ts";

export interface LookDeps extends Omit<PostDeps, "deliver" | "retryDelaysMs"> {
  readonly schedule: Waker;
}

const LOOK_S = 5;
const MINUTE_MS = 60_000;
/** Subscriptions, or partners, that one transaction looks at. */
const AT_ONCE = 100;

/**
 * Looks at the subscriptions in trouble and writes what there is to tell, each kind once in an incident; answers what was
 * raised. The lock that each transaction takes keeps two processes from writing the same. `everywhere`: also looks at the
 * subscriptions that only have a backlog.
 */
export async function lookForTrouble(deps: LookDeps, everywhere: boolean, stop: AbortSignal) {
  const { db, clock, log, schedule } = deps;
  const at = clock.now();
  const { troubled, unmailed } = await findTrouble(db, everywhere);
  const raised: Raised[] = [];
  await inGroups({ log, stop, field: "subscription_id" }, troubled, async (group) => {
    const made = await db.transaction((tx) => raiseAlerts(tx, group, at));
    for (const { kind, subscriptionId } of made)
      log.info("alert.raised", { kind, subscription_id: subscriptionId });
    raised.push(...made);
  });
  // A mail of an earlier look may have waited for its digest.
  const partnerIds = [...unmailed, ...raised.map(({ partnerId }) => partnerId)];
  await inGroups({ log, stop, field: "partner_id" }, partnerIds, async (group) => {
    if (await db.transaction((tx) => mailAlerts(tx, deps, { partnerIds: group, at })))
      void schedule.wake([MAIL_WAKE]);
  });
  return raised;
}

/** Works in groups. One that fails is halved until the item that it fails for is alone, so that the others succeed. */
async function inGroups<T extends string | number>(
  { log, stop, field }: Pick<LookDeps, "log"> & { stop: AbortSignal; field: string },
  items: readonly T[],
  work: (group: readonly T[]) => Promise<void>,
): Promise<void> {
  const groups = inChunks([...new Set(items)], AT_ONCE);
  for (let group = groups.shift(); group && !stop.aborted; group = groups.shift())
    try {
      await work(group);
    } catch (error) {
      const failure = failureOf(error);
      if (failure === "store") throw error;
      log.warn("alerts.failed", { items: group.length, failure, ...errorFields(error) });
      if (group.length > 1) groups.push(...inChunks(group, Math.ceil(group.length / 2)));
      else if (failure === "refused")
        log.error("alerts.stuck", { [field]: group[0], ...errorFields(error) });
    }
}

function inChunks<T>(items: readonly T[], size: number): (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}

/** The job that raises alerts. The POSTs about them go on while the next looks are made: no look waits for a receiver. */
export function alertsJob(
  deps: LookDeps & PostDeps & { readonly db: RawDb },
  stop: AbortSignal,
): Job {
  const { db, clock, log } = deps;
  let lastMinute: number | undefined;
  let posting: Promise<void> | undefined;
  return {
    name: "alerts",
    paceS: LOOK_S,
    anyClock: true,
    db,
    async run() {
      const minute = Math.floor(clock.now().getTime() / MINUTE_MS);
      const { length: rows } = await lookForTrouble(deps, minute !== lastMinute, stop);
      lastMinute = minute;
      posting ??= postAlerts(deps, stop)
        .catch((error: unknown) => log.warn("alerts.failed", errorFields(error)))
        .finally(() => (posting = undefined));
      return { rows };
    },
    drain: () => posting,
  };
}
