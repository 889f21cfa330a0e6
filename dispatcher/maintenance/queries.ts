import { and, eq, sql } from "drizzle-orm";
import type { PgUpdateSetSource } from "drizzle-orm/pg-core";

import type { Db } from "../../db/client.ts";
import { allQueued, queuesOf } from "../../db/log.ts";
import {
  onlyRow,
  asTable,
  list,
  oneOf,
  rows as tableOf,
  statement,
  table,
  value,
  type ValuesOf,
} from "../../db/statement.ts";
import { maintenanceJobs } from "../../db/schema/dispatchers.ts";

const JOB = {
  name: maintenanceJobs.name,
  /** In seconds, as are the others. */
  pace: value("double precision"),
  lease: value("double precision"),
  /** After the last run of these it rests for half an hour. */
  after: value("text[]"),
  /** This process runs it. */
  running: value("boolean"),
};

const BEGUN = {
  name: maintenanceJobs.name,
  reached: maintenanceJobs.reached,
  isSteady: value("boolean"),
};

const taking = statement({
  name: "maintenance.take",
  // Renews leases and takes what is due in one round trip, and skips what another process is taking.
  params: { jobs: tableOf(JOB), holder: value("text") },
  columns: BEGUN,
  text: ({ jobs, holder }) => sql`
    with asked as materialized (select * from ${jobs}), renewed as (
      update maintenance_jobs j set leased_until = now() + make_interval(secs => a.lease)
        from asked a where a.running and j.name = a.name and j.holder = ${holder}
    ), due as (
      select j.name, j.began_at, a.pace, a.lease
        from asked a join maintenance_jobs j on j.name = a.name
       where not a.running
         -- What lies further ahead than it can was written before the clock of this server was set back.
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

export type Begun = ValuesOf<typeof BEGUN>;

/**
 * Claims the due jobs that have no holder, and renews the leases of the jobs that this process runs. A job whose lease
 * has ended is claimed again and goes on after its last chunk. `isSteady`: the previous run began within two hours, by
 * the clock of Postgres. Otherwise maintenance stood still or that clock was set, and rows may only look old.
 */
export function takeJobs(
  db: Db,
  given: { readonly jobs: readonly ValuesOf<typeof JOB>[]; readonly holder: string },
): Promise<Begun[]> {
  return db.run(taking, given);
}

/** A run that a process holds, and what there is to add to its rows. */
interface Run {
  readonly name: string;
  readonly holder: string;
  readonly rows: number;
}

/** Writes to the row of a job; false if another process has taken it over. */
async function update(
  db: Db,
  { name, holder, rows }: Run,
  set: PgUpdateSetSource<typeof maintenanceJobs>,
): Promise<boolean> {
  const { count } = await db
    .update(maintenanceJobs)
    .set({ ...set, rows: sql`${maintenanceJobs.rows} + ${rows}::bigint` })
    .where(and(eq(maintenanceJobs.name, name), eq(maintenanceJobs.holder, holder)));
  return count > 0;
}

/** Notes what a chunk has handled. A process that stops leaves the rest to another one at once. */
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
 * Ends a run. A failed one is tried again: the first pause is `leaseS`, and it doubles with each failure, up to the pace of
 * the job or a minute.
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

const endingSessions = statement({
  name: "maintenance.endLostSessions",
  // A view of the server, and a function that ends what it finds there.
  params: { seconds: value("double precision") },
  columns: { session: value("text"), isEnded: value("boolean") },
  text: ({ seconds }) => sql`
    select format('%s %s', application_name, pid) as session, pg_terminate_backend(pid) as "isEnded"
      from pg_stat_activity
     where datname = current_database() and usename = current_user and application_name like 'reviewrelay%'
       and state = 'active' and wait_event_type = 'Client'
       and state_change < clock_timestamp() - make_interval(secs => ${seconds})`,
});

/**
 * Ends the sessions of our pools that have waited for their client for so long in the midst of a request. Postgres never
 * does: between two messages of a request neither the limit of a statement nor that of an idle transaction holds, so where
 * a proxy between keeps the connection open, a client that is lost there would keep its locks for ever.
 */
export async function endLostSessions(db: Db, seconds: number) {
  return [...(await db.run(endingSessions, { seconds }))];
}

/** Rows that are counted at the most, so that asking costs the same whatever waits. */
export const FIGURES_AT_MOST = 20_000;

const backlog = statement({
  name: "figures.backlog",
  // Built on the SQL of queues, of which it walks a bounded part.
  params: { limit: value("integer") },
  columns: {
    state: oneOf(["pending", "waiting", "held"]),
    entries: value("bigint"),
    /** Of the oldest of them. */
    ageS: value("double precision"),
  },
  text: ({ limit }) => sql`
    with recursive asked as (select id as shard from shards), ${queuesOf(limit)}, counted as materialized (
      select case when s.state = 'disabled' then 'held' else e.state end as state, e.recorded_at
        from queues q
       cross join lateral (
              select id, shard, number, state from webhook_subscriptions where id = q.subscription_id offset 0) s
       cross join lateral (${allQueued} offset 0) e
       limit ${limit}::integer
    )
    select names.state, count(c.recorded_at) as entries,
           greatest(coalesce(extract(epoch from now() - min(c.recorded_at)), 0), 0)::float8 as "ageS"
      from unnest(array['pending', 'waiting', 'held']) as names(state)
      left join counted c on c.state = names.state
     group by names.state`,
});

const others = statement({
  name: "figures.others",
  // A bounded count beside times, in one round trip.
  params: { limit: value("bigint"), jobs: list(maintenanceJobs.name) },
  columns: {
    mails: value("bigint"),
    /** For how long the mail that is due first could have been sent. */
    mailOverdueS: value("double precision"),
    /** Since the last success of each job. */
    jobs: table({ name: maintenanceJobs.name, ageS: value("double precision") }),
  },
  text: ({ limit, jobs }) => sql`
    select (select count(*) from (select from mails where state = 'queued' limit ${limit}) part) as mails,
           greatest(coalesce(extract(epoch from now() - (
             select due_at from mails where state = 'queued' order by due_at, id limit 1)), 0), 0)::float8
             as "mailOverdueS",
           ${asTable(sql`
             select name, greatest(extract(epoch from now() - coalesce(succeeded_at, 'epoch')), 0)::float8 as "ageS"
               from maintenance_jobs where name = any (${jobs})`)} as jobs`,
});

/** What the whole database holds, for its operators: two statements, bounded by `FIGURES_AT_MOST` and the limits of the pool. */
export async function readFigures(db: Db, jobs: readonly string[]) {
  const limit = FIGURES_AT_MOST;
  const counted = await db.run(backlog, { limit });
  return { backlog: counted, ...onlyRow(await db.run(others, { limit, jobs })) };
}

export type Figures = Awaited<ReturnType<typeof readFigures>>;
