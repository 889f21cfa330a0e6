import type { RawDb } from "../../db/client.ts";

/**
 * Cancels active statements of the product for this time, some after their first rows, and terminates the session of
 * every third. It runs on the server, because a client would be too slow for statements that take milliseconds.
 */
export async function hitStatements(db: RawDb, forMs: number): Promise<void> {
  await db.sql.unsafe(`
    do $$
    declare
      until timestamptz := clock_timestamp() + ${Math.round(forMs)} * interval '1 ms';
      victim integer;
      hits integer := 0;
    begin
      while clock_timestamp() < until loop
        perform pg_sleep(0.005), pg_stat_clear_snapshot();
        select pid into victim from pg_stat_activity
         where application_name like 'reviewrelay-%' and datname = current_database() and state = 'active'
         order by random() limit 1;
        continue when victim is null;
        hits := hits + 1;
        perform case when hits % 3 = 0 then pg_terminate_backend(victim) else pg_cancel_backend(victim) end;
      end loop;
    end $$`);
}
