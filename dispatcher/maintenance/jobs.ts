import type { RawDb } from "../../db/client.ts";
import * as partitions from "../../db/partitions.ts";
import { serverTime } from "../../db/server.ts";
import type { Log } from "../../src/lib/log.ts";
import type { Done, Job } from "./loop.ts";
import * as removals from "./removal-queries.ts";

const HOUR_S = 3_600;
/** The most rows that one run removes from data that is kept for years, so that a wrong setting is noticed in time. */
export const ROWS_AT_MOST = 100_000;

export interface HourlyDeps {
  readonly db: RawDb;
  /** The database connection that builds indexes, which may take an hour. */
  readonly indexDb: RawDb;
  readonly log: Log;
  readonly retentionDays: number;
  /** The retention time of rows of the audit log in days; 0 keeps them for ever. */
  readonly auditRetentionDays: number;
  readonly signInRetentionDays: number;
  readonly historyRetentionDays: number;
}

/** Returns the hourly jobs: they make partitions and indexes, and remove data that is older than its retention time. */
export function hourlyJobs(deps: HourlyDeps): Job[] {
  const { db, indexDb, retentionDays } = deps;
  const limited = { rowsAtMost: ROWS_AT_MOST };
  const removal = (
    name: string,
    removeOld: (db: RawDb, old: removals.Old) => Promise<Done>,
    { days = retentionDays, ...more }: Partial<Job> & { readonly days?: number } = {},
  ): Job[] => {
    const run: Job["run"] = ({ reached }) => removeOld(db, { days, reached });
    return days === 0 ? [] : [{ name, paceS: HOUR_S, isRemoval: true, db, run, ...more }];
  };
  const creation = (name: string, on: RawDb, make: (db: RawDb) => Promise<string[]>): Job => ({
    name,
    paceS: HOUR_S,
    db: on,
    run: async () => ({ rows: (await make(on)).length }),
  });
  return [
    ...removal("history", removals.removeOldHistory, {
      ...limited,
      days: deps.historyRetentionDays,
      // The job starts half an hour after a removal of attempts or skipped entries, because a redelivery of one of them
      // may be in progress. By then its entry is queued, and the job keeps the `review_history` row of the event.
      restsAfter: ["attempts", "skipped_entries"],
    }),
    creation("partitions", db, async () =>
      partitions.ensurePartitions(db, await serverTime(db), retentionDays),
    ),
    // The job lease is an hour, so that a lost or failed run is not repeated in the same hour: it may have dropped its
    // partition already, and the next partition has to wait for the next hour.
    ...removal("attempts", (_, { days }) => dropPartition(deps, days), { leaseS: HOUR_S }),
    ...removal("default_partitions", removeFromDefaultPartition, limited),
    ...removal("held_entries", removals.expireHeldEntries),
    ...removal("skipped_entries", removals.removeSkipped),
    ...removal("batch_entries", removals.removeBatchEntries),
    ...removal("mails", removals.removeOldMails),
    ...removal("incidents", removals.removeOldIncidents),
    ...removal("endpoint_checks", removals.removeOldChecks),
    ...removal("audit_log", removals.removeOldAudit, { ...limited, days: deps.auditRetentionDays }),
    ...removal("sign_ins", removals.removeOldSignIns, {
      ...limited,
      days: deps.signInRetentionDays,
    }),
    creation("day_indexes", indexDb, partitions.indexEndedDays),
  ];
}

async function dropPartition({ db, log }: HourlyDeps, days: number): Promise<Done> {
  const dropped = await partitions.dropExpiredPartition(db, days);
  if (dropped === undefined) return { rows: 0 };
  const { name, rows, isCounted } = dropped;
  log.warn("partition.dropped", { partition: name, rows, rows_counted: isCounted });
  return { rows };
}

/** Removes old attempts from the default partition. */
async function removeFromDefaultPartition(db: RawDb, { days }: removals.Old): Promise<Done> {
  return removals.again(await partitions.deleteExpiredDefaultRows(db, days, removals.CHUNK_ROWS));
}
