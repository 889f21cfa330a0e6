import type { RawDb } from "../../db/client.ts";
import * as partitions from "../../db/partitions.ts";
import { serverTime } from "../../db/server.ts";
import type { Log } from "../../src/lib/log.ts";
import type { Done, Job } from "./loop.ts";
import * as records from "./removal-queries.ts";

const HOUR_S = 3_600;
/** The most rows that one run removes from data that is kept for years, so that a wrong setting is noticed in time. */
export const ROWS_AT_MOST = 100_000;

export interface HourlyDeps {
  readonly db: RawDb;
  /** The connection that builds indexes, which may take an hour. */
  readonly indexDb: RawDb;
  readonly log: Log;
  readonly retentionDays: number;
  /** The retention time of audit records in days; 0 keeps them for ever. */
  readonly auditRetentionDays: number;
  readonly signInRetentionDays: number;
  readonly historyRetentionDays: number;
}

/** Returns the hourly jobs: they make partitions and indexes, and remove data that is older than its retention time. */
export function hourlyJobs(deps: HourlyDeps): Job[] {
  const { db, indexDb, log, retentionDays } = deps;
  const limited = { rowsAtMost: ROWS_AT_MOST };
  const removal = (
    name: string,
    removeOld: (db: RawDb, old: records.Old) => Promise<Done>,
    { days = retentionDays, ...more }: Partial<Job> & { readonly days?: number } = {},
  ): Job[] => {
    const run: Job["run"] = ({ reached }) => removeOld(db, { days, reached });
    return days === 0 ? [] : [{ name, paceS: HOUR_S, isRemoval: true, db, run, ...more }];
  };
  const creation = (
    name: string,
    on: RawDb,
    event: string,
    make: (db: RawDb) => Promise<string[]>,
  ): Job => ({
    name,
    paceS: HOUR_S,
    db: on,
    async run() {
      const made = await make(on);
      if (made.length > 0) log.info(event, { partitions: made });
      return { rows: made.length };
    },
  });
  return [
    ...removal("history", records.removeOldHistory, {
      ...limited,
      days: deps.historyRetentionDays,
      // A redelivery of an attempt that was just dropped may be in progress. After the rest its entry is queued, so
      // that the history row of the event is kept.
      restsAfter: ["attempts", "skipped_entries"],
    }),
    creation("partitions", db, "partitions.made", async () =>
      partitions.ensurePartitions(db, await serverTime(db), retentionDays),
    ),
    // The lease is longer, because a lost or failed run may have dropped its partition already, and the next
    // partition has to wait for the next hour.
    ...removal("attempts", (_, { days }) => dropPartition(deps, days), { leaseS: HOUR_S }),
    ...removal("default_partitions", removeFromDefaultPartition, limited),
    ...removal("held_entries", records.expireHeldEntries),
    ...removal("skipped_entries", records.removeSkipped),
    ...removal("batch_entries", records.removeBatchEntries),
    ...removal("mails", records.removeOldMails),
    ...removal("incidents", records.removeOldIncidents),
    ...removal("audit_log", records.removeOldAudit, { ...limited, days: deps.auditRetentionDays }),
    ...removal("sign_ins", records.removeOldSignIns, {
      ...limited,
      days: deps.signInRetentionDays,
    }),
    creation("day_indexes", indexDb, "indexes.made", partitions.indexEndedDays),
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
async function removeFromDefaultPartition(db: RawDb, { days }: records.Old): Promise<Done> {
  return records.again(await partitions.deleteExpiredDefaultRows(db, days, records.CHUNK_ROWS));
}
