import { and, eq, sql, type SQLWrapper } from "drizzle-orm";
import type { PgUpdateSetSource } from "drizzle-orm/pg-core";

import type { Db } from "../../db/client.ts";
import { anyOf } from "../../db/conditions.ts";
import { allQueued, queuesOf } from "../../db/log.ts";
import { mails } from "../../db/schema/alerts.ts";
import { oneOf, onlyRow, rows, statement, value, type ValuesOf } from "../../db/statement.ts";
import { maintenanceJobs } from "../../db/schema/dispatchers.ts";

const JOB_PARAMS = {
  name: maintenanceJobs.name,
  /** The interval between two runs. All times here are in seconds. */
  pace: value("double precision"),
  lease: value("double precision"),
  /** The names of jobs after which this job rests for half an hour. */
  after: value("text[]"),
  /** Whether this process runs the job now. */
  running: value("boolean"),
};

const BEGUN_COLUMNS = {
  name: maintenanceJobs.name,
  reached: maintenanceJobs.reached,
  isSteady: value("boolean"),
};

const jobClaim = statement({
  name: "maintenance.take",
  // Raw SQL, because the statement renews job leases and claims due jobs in one round trip, and leaves out rows that
  // another process locks.
  params: { jobs: rows(JOB_PARAMS), holder: value("text") },
  columns: BEGUN_COLUMNS,
  text: ({ jobs, holder }) => sql`
    with asked as materialized (select * from ${jobs}), renewed as (
      update maintenance_jobs j set leased_until = now() + make_interval(secs => a.lease)
        from asked a where a.running and j.name = a.name and j.holder = ${holder}
    ), due as (
      select j.name, j.began_at, a.pace, a.lease
        from asked a join maintenance_jobs j on j.name = a.name
       where not a.running
         -- A job is also due if its time is further ahead than possible: it was written before the clock of this server
         -- was set back.
         and case when j.holder is null
                  then j.next_at not between now() and now() + make_interval(secs => greatest(a.pace, 60) + 1)
                  else j.leased_until not between now() and now() + make_interval(secs => a.lease + 1) end
         and not exists (
               select from maintenance_jobs o
                where o.name = any (a.after)
                  and (o.next_at <= now() or o.leased_until > now() or o.began_at > now() - interval '30 minutes'))
         for no key update of j skip locked
    )
    update maintenance_jobs j
       set holder = ${holder}, leased_until = now() + make_interval(secs => d.lease), began_at = now(),
           next_at = now() + make_interval(secs => d.pace), rows = case when j.holder is null then 0 else j.rows end
      from due d where j.name = d.name
    returning j.name, j.reached,
              coalesce(d.began_at between now() - interval '2 hours' and now() + interval '1 second', false) as "isSteady"`,
});

export type Begun = ValuesOf<typeof BEGUN_COLUMNS>;

/**
 * Claims the due jobs that have no holder, and renews the job leases of the jobs that this process runs. A job with an
 * expired job lease is claimed again and continues after its last chunk. `isSteady`: the previous run began within the
 * last two hours, by the clock of PostgreSQL. Otherwise maintenance stood still or that clock was set, and rows may
 * only look old.
 */
export function claimJobs(db: Db, given: ValuesOf<typeof jobClaim.params>): Promise<Begun[]> {
  return db.run(jobClaim, given);
}

/** A run that a process holds, and the number of rows to add to its count. */
interface Run {
  readonly name: string;
  readonly holder: string;
  readonly rows: number;
}

/** Updates the row of a job; returns false if another process has taken it over. */
async function update(
  db: Db,
  run: Run,
  set: PgUpdateSetSource<typeof maintenanceJobs>,
): Promise<boolean> {
  const updated = await db
    .update(maintenanceJobs)
    .set({ ...set, rows: sql`${maintenanceJobs.rows} + ${run.rows}::bigint` })
    .where(and(eq(maintenanceJobs.name, run.name), eq(maintenanceJobs.holder, run.holder)));
  return updated.count > 0;
}

/**
 * Saves the progress of a chunk. A process that stops (`isLeft`) ends its job lease, so that another process continues
 * the run immediately.
 */
export function saveProgress(
  db: Db,
  run: Run,
  { reached, isLeft }: { readonly reached: string; readonly isLeft: boolean },
): Promise<boolean> {
  return update(db, run, {
    reached,
    ...(isLeft && { leasedUntil: sql`now() - interval '1 second'` }),
  });
}

/**
 * Ends a run. A failed run is retried: the first pause is `leaseS`, and it doubles with each failure, up to the
 * larger of the pace of the job and a minute.
 */
export function endRun(
  db: Db,
  run: Run,
  end: {
    readonly durationMs: number;
    readonly failed?: { readonly error: string; readonly paceS: number; readonly leaseS: number };
  },
): Promise<boolean> {
  const { failures } = maintenanceJobs;
  const { durationMs, failed } = end;
  const set = { durationMs, lastError: failed?.error ?? null, holder: null, leasedUntil: null };
  if (failed === undefined)
    return update(db, run, { ...set, reached: null, failures: 0, succeededAt: sql`now()` });
  const longestS = Math.max(failed.paceS, 60);
  const pauseS = sql`least(${longestS}::float8, ${failed.leaseS}::float8 * 2 ^ least(${failures}, 20))`;
  const nextAt = sql`now() + make_interval(secs => ${pauseS})`;
  return update(db, run, { ...set, nextAt, failures: sql`${failures} + 1` });
}

/**
 * Terminates PostgreSQL sessions of our connection pools that have waited for their client in the middle of a request
 * for this number of seconds. PostgreSQL never terminates them: between two messages of a request neither
 * `statement_timeout` nor the limit of an idle transaction applies. If a proxy keeps the connection of a lost client
 * open, the locks of the session would stay for ever.
 */
export async function endLostSessions(db: Db, seconds: number) {
  return db
    .select({
      session: sql`format('%s %s', application_name, pid)`.mapWith(String),
      isEnded: sql`pg_terminate_backend(pid)`.mapWith(Boolean),
    })
    .from(sql`pg_stat_activity`)
    .where(
      sql`datname = current_database() and usename = current_user and application_name like 'reviewrelay%'
          and state = 'active' and wait_event_type = 'Client'
          and state_change < clock_timestamp() - make_interval(secs => ${seconds})`,
    );
}

/** The most rows that are counted for a gauge, so that the cost of a scrape is bounded. */
export const FIGURES_AT_MOST = 20_000;

const backlogFigures = statement({
  name: "figures.backlog",
  // Raw SQL, because the statement is built on the SQL of queues and walks a bounded part of them.
  params: { limit: value("integer") },
  columns: {
    state: oneOf(["pending", "waiting", "held"]),
    entries: value("bigint"),
  },
  text: ({ limit }) => sql`
    with recursive asked as (select id as shard from shards), ${queuesOf(limit)}, counted as materialized (
      select case when s.state = 'disabled' then 'held' else e.state end as state
        from queues q
       cross join lateral (
              select id, shard, number, state from webhook_subscriptions where id = q.subscription_id offset 0) s
       cross join lateral (${allQueued} offset 0) e
       limit ${limit}::integer
    )
    select names.state, count(c.state) as entries
      from unnest(array['pending', 'waiting', 'held']) as names(state)
      left join counted c on c.state = names.state
     group by names.state`,
});

/** The number of seconds since an instant; 0 if it is in the future or absent. */
const ageOf = (at: SQLWrapper) =>
  sql`greatest(extract(epoch from now() - ${at}), 0)`.mapWith(Number);

/** Reads the gauges of the whole database, bounded by `FIGURES_AT_MOST` and the limits of the pool. */
export async function readFigures(db: Db, jobs: readonly string[]) {
  const { name, succeededAt } = maintenanceJobs;
  // The state is a literal, because the planner uses a partial index only if the query repeats its condition.
  const isQueued = sql`${mails.state} = 'queued'`;
  /** The time in seconds by which the first due mail is overdue; 0 if no mail is queued. */
  const mailOverdueS = ageOf(sql`min(${mails.dueAt})`);
  return {
    backlog: await db.run(backlogFigures, { limit: FIGURES_AT_MOST }),
    ...onlyRow(await db.select({ mailOverdueS }).from(mails).where(isQueued)),
    /** The time in seconds since the last success of each job. */
    jobs: await db
      .select({ name, ageS: ageOf(sql`coalesce(${succeededAt}, 'epoch')`) })
      .from(maintenanceJobs)
      .where(anyOf(name, jobs)),
  };
}

export type Figures = Awaited<ReturnType<typeof readFigures>>;
