// Shows that postgres 3.4.9 counts the rows of a failed query into the answer of the next one on its connection:
//
//   npm install postgres@3.4.9
//   DATABASE_URL=postgres://user:password@localhost:5432/database node rows-of-a-failed-query.mjs
//
// An argument names another copy of the driver, such as a patched clone: /path/to/postgres/src/index.js
// The script only reads. It exits with 1 if an answer is wrong.
import { argv, env, exit } from "node:process";

const { default: postgres } = await import(argv[2] ?? "postgres");

const url = env.DATABASE_URL;
if (!url) throw new Error("Set DATABASE_URL.");

const FAILURES = {
  "an error after 1,999 rows": "select 1 / (2000 - x) from generate_series(1, 3000) x",
  "a statement timeout after 900 rows":
    "select case when x > 900 then pg_sleep(9) end from generate_series(1, 1000) x",
};

let wrong = 0;
for (const [name, query] of Object.entries(FAILURES)) {
  // One connection, so that the next query meets what the failed one has left.
  const sql = postgres(url, { max: 1 });
  await sql`set statement_timeout = 300`;
  const code = await sql.unsafe(query).then(
    () => "no error",
    (error) => error.code,
  );
  const rows = await sql`select 7 as x`;
  const verdict = rows.length === 1 && rows[0]?.x === 7 ? "right" : "WRONG";
  if (verdict === "WRONG") wrong += 1;
  const first = JSON.stringify(rows[0]);
  console.log(
    `${verdict}: after ${name} (${code}), "select 7" has ${rows.length} rows, the first is ${first}`,
  );
  await sql.end();
}
exit(wrong === 0 ? 0 : 1);
