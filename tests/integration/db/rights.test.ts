// What the documented database roles can do, and that the functions of the schema run nothing of theirs.
import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import postgres from "postgres";

import { connect } from "../../../db/client.ts";
import { migrate } from "../../../db/migrate.ts";
import { ROOT } from "../../../scripts/install/install.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";

const world = fixture(install);

describe("each function of the schema", () => {
  test("has a search path of its own, which begins with pg_catalog and ends with pg_temp", async () => {
    for (const { name, path } of await functions())
      expect([name, path]).toEqual([name, `search_path=pg_catalog, ${world.role}, pg_temp`]);
  });

  test("that runs as its owner belongs to the owner of the tables, and no one else may call it", async () => {
    const definers = (await functions()).filter((one) => one.isDefiner);
    expect(definers.map(({ name }) => name)).toContain("place_in_inbox");
    for (const { name, owner, callers } of definers)
      expect([name, owner, callers]).toEqual([name, world.role, [world.role]]);
  });
});

test("the roles of the guides have the rights that the guides grant, and no others", async () => {
  const rows = await world.db.sql<{ role: string; held: string }[]>`
    select rolname as role, concat_ws(' ', privilege, relname, column_name) as held
      from pg_roles cross join pg_class c
     cross join unnest('{select,insert,update,delete,truncate,references,trigger}'::text[]) as privilege
      left join lateral (
             select attname as column_name from pg_attribute
              where attrelid = c.oid and attnum > 0 and not attisdropped
                and privilege in ('select', 'insert', 'update', 'references')
                and has_column_privilege(rolname, c.oid, attname, privilege)) columns on true
     where relnamespace = ${world.role}::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f') and rolname = ${world.platform}
       and (column_name is not null or has_table_privilege(rolname, c.oid, privilege))
    union all
    select rolname, 'sequence ' || relname from pg_roles cross join pg_class
     where relnamespace = ${world.role}::regnamespace and relkind = 'S' and rolname = ${world.platform}
       and has_sequence_privilege(rolname, pg_class.oid, 'usage, select, update')
    union all
    select rolname, 'create' from pg_roles
     where rolname = ${world.platform} and has_schema_privilege(rolname, ${world.role}, 'create')
     order by 1, 2`;
  expect(rows.map(({ held }) => held)).toEqual([
    "insert inbox action",
    "insert inbox service_id",
    "select reviews external_review_id",
    "select reviews id",
    "select reviews store_review_site_id",
  ]);
});

describe("the role that may only insert into the inbox", () => {
  test("inserts an action about a review, which gets the review's partner", async () => {
    await withPlatform((sql) => insert(sql));
    expect(await partners()).toEqual([world.partnerId]);
  });

  test("runs none of its own relations, types, functions and operators by the insert, whatever their names are", async () => {
    await withPlatform(async (sql) => {
      const planted = await plant(sql);
      expect(planted).toEqual(
        expect.arrayContaining([
          "reviews",
          "store_review_sites",
          "inbox",
          "inbox_position",
          "int8",
          "text",
        ]),
      );
      expect(planted.length).toBeGreaterThan(40);
      await insert(sql);
    });
    expect(await partners()).toEqual([world.partnerId, world.partnerId]);
  });

  test("runs none of its functions and operators either where it may create them in the schema of the tables", async () => {
    await world.db
      .sql`grant create on schema ${world.db.sql(world.role)} to ${world.db.sql(world.platform)}`;
    await withPlatform(async (sql) => {
      await plant(sql, world.role);
      await insert(sql);
    });
    expect(await partners()).toEqual([1, 2, 3].map(() => world.partnerId));
  });

  test("cannot make the function the trigger of a table of its own, and one that exists does nothing", async () => {
    await withPlatform(async (sql) => {
      await sql.unsafe(`
        create type pg_temp.sly as (text text);
        create function pg_temp.run(pg_temp.sly) returns jsonb language plpgsql as $$ begin
          raise exception 'ran as %', current_user; end $$;
        create cast (pg_temp.sly as jsonb) with function pg_temp.run(pg_temp.sly) as implicit;
        create table pg_temp.inbox (position bigint, service_id int, action pg_temp.sly, partner_id int, state text,
          errors jsonb, inserted_at timestamptz)`);
      const attach = () =>
        sql.unsafe(`create trigger own before insert on pg_temp.inbox
          for each row execute function ${world.role}.place_in_inbox()`);
      await expect(attach().then(() => "made")).rejects.toThrow("permission denied for function");
      await world.db.sql.unsafe(
        `grant execute on function ${world.role}.place_in_inbox() to public`,
      );
      await attach();
      await world.db.sql.unsafe(
        `revoke execute on function ${world.role}.place_in_inbox() from public`,
      );
      await expect(
        sql`insert into pg_temp.inbox (action) values (row('x'))`.then(() => "inserted"),
      ).rejects.toThrow("place_in_inbox is a trigger of the inbox");
    });
  });

  test("is told by name which limit an action exceeds", async () => {
    await withPlatform(async (sql) => {
      const refusal = (body: string) =>
        insert(sql, { metadata: { a: body, b: body, c: body, d: body } }).catch(
          (error: Error) => error.message,
        );
      const message = 'new row for relation "inbox" violates check constraint';
      expect(await refusal("x".repeat(262_145))).toBe(`${message} "inbox_action_over_1_mib"`);
      expect(await refusal("é".repeat(131_073))).toBe(`${message} "inbox_action_over_1_mib"`);
      await expect(insert(sql, { metadata: { body: "x".repeat(262_145) } })).rejects.toThrow(
        `${message} "inbox_text_over_256_kib"`,
      );
    });
  });
});

interface FunctionRow {
  readonly name: string;
  readonly path: string | null;
  readonly isDefiner: boolean;
  readonly owner: string;
  readonly callers: readonly string[];
}

/** Lists the functions of the schema; PUBLIC is `-` among those who may call one. */
const functions = () => world.db.sql<FunctionRow[]>`
  select proname as name, array_to_string(proconfig, ' ') as path, prosecdef as "isDefiner",
         proowner::regrole::text as owner,
         array(select grantee::regrole::text from aclexplode(coalesce(proacl, acldefault('f', proowner)))) as callers
    from pg_proc where pronamespace = ${world.role}::regnamespace order by 1`;

/**
 * Plants an object for each word and each operator of the functions that run as their owner, and for each relation of the
 * schema: every one of them fails when it is used. Returns the names.
 */
async function plant(sql: postgres.Sql, schema = "pg_temp"): Promise<string[]> {
  const [definers] = await world.db.sql<{ source: string }[]>`
    select string_agg(prosrc, ' ') as source from pg_proc
     where pronamespace = ${world.role}::regnamespace and prosecdef`;
  const relations = await world.db.sql<{ name: string; columns: string[] }[]>`
    select relname as name, array(select format('null::%s as %I', format_type(atttypid, atttypmod), attname)
             from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped order by attnum) as columns
      from pg_class c where relnamespace = ${world.role}::regnamespace and relkind in ('r', 'p', 'v', 'S')`;
  await sql.unsafe(`
    create function ${schema}.run() returns boolean language plpgsql as $$ begin
      raise exception 'ran as %', current_user; end $$`);
  const own = schema === "pg_temp" ? relations : [];
  for (const { name, columns } of own)
    await sql.unsafe(
      `create view pg_temp."${name}" as select ${columns.join(", ")} from (select pg_temp.run() offset 0) x`,
    );
  const source = definers?.source ?? "";
  const taken = new Set([...relations.map(({ name }) => name), "run"]);
  const words = [...new Set(source.match(/[a-z_][a-z0-9_]+/g) ?? [])].filter(
    (one) => !taken.has(one),
  );
  const types = ["text", "jsonb", "int4", "int8", "name", "regclass", "varchar"].map(
    (one) => `pg_catalog.${one}`,
  );
  for (const word of words) {
    await sql.unsafe(
      `create domain ${schema}."${word}" as pg_catalog.text check (${schema}.run())`,
    );
    for (const type of types)
      for (const parameters of [type, `${type}, pg_catalog.text`, `${type}, pg_catalog.int4`])
        await sql.unsafe(`create function ${schema}."${word}"(${parameters}) returns pg_catalog.text
          language plpgsql as $$ begin perform ${schema}.run(); return null; end $$`);
  }
  const operators = [
    ...new Set(source.match(/(?<=\.)[-+*/<>=~!@#%^&|]+(?=\))|(?<=\s)[-<>=~]+(?=\s)/g) ?? []),
  ];
  expect(operators).toEqual(expect.arrayContaining(["->>", "~", "=", "<>"]));
  for (const left of types)
    for (const right of types) {
      const name = `${schema}."planted_operator"(${left}, ${right})`;
      await sql.unsafe(`create or replace function ${name} returns pg_catalog.bool language plpgsql as $$ begin
        perform ${schema}.run(); return null; end $$`);
      for (const operator of operators)
        await sql.unsafe(`create operator ${schema}.${operator}
          (leftarg = ${left}, rightarg = ${right}, function = ${schema}."planted_operator")`);
    }
  const path = schema === "pg_temp" ? world.role : `${schema}, pg_catalog`;
  await sql.unsafe(`set search_path = ${schema}, ${path}`);
  return [...taken, ...words];
}

let count = 0;

function insert(sql: postgres.Sql, fields: object = {}): Promise<unknown> {
  const one = {
    id: `rights-${++count}`,
    event: "note_added",
    actor: { type: "system" },
    occurred_at: "2026-05-01T08:00:00.000+00:00",
    review_id: world.reviewId,
    metadata: { body: "Called back." },
    ...fields,
  };
  return sql.unsafe(
    `insert into ${world.role}.inbox (service_id, action) values (1, $1::pg_catalog.text::pg_catalog.jsonb)`,
    [JSON.stringify(one)],
  );
}

async function partners(): Promise<number[]> {
  const rows = await world.db.sql<{ id: number }[]>`
    select partner_id as id from ${world.db.sql(world.role)}.inbox order by position`;
  return rows.map(({ id }) => id);
}

/** Runs statements in one session of the platform's role. */
async function withPlatform(work: (sql: postgres.Sql) => Promise<unknown>): Promise<void> {
  // One session for all statements: a default of the database must not end it at the first error.
  const connection = { exit_on_error: "off" };
  const sql = postgres(world.platformUrl, { max: 1, onnotice: () => {}, connection });
  try {
    await work(sql);
  } finally {
    await sql.end();
  }
}

/**
 * Installs the product beside a platform by the statements of docs/operations/moving-in.md, which are read from it: the
 * schema, its owner, and the rights of the platform's role.
 */
async function install() {
  const database = await createDatabase("roles");
  const suffix = randomBytes(6).toString("hex");
  const [role, platform] = [`reviewrelay_${suffix}`, `platform_${suffix}`];
  const admin = database.db.sql;
  const name = new URL(database.url).pathname.slice(1);
  const guide = readFileSync(join(ROOT, "docs/operations/moving-in.md"), "utf8");
  const statements = [
    ...guide.matchAll(/-c "((?:create (?:role|schema)|alter role|grant) [^"]+)"/g),
  ].map(([, text = ""]) =>
    text
      .replaceAll("$ROLE", role)
      .replaceAll("$OWN", platform)
      .replaceAll("$PASSWORD", "change-me")
      .replaceAll("$DATABASE", `"${name}"`),
  );
  const grants = statements.filter((one) => one.startsWith("grant"));
  expect([grants.length, statements.length - grants.length]).toEqual([3, 3]);
  await admin.unsafe(`create role ${platform} login password 'change-me'`);
  // The grants come before the last migrations, as in a database of 0.1.0, and suffice afterwards.
  for (const one of statements.filter((text) => !grants.includes(text))) await admin.unsafe(one);
  const urlOf = (username: string) =>
    Object.assign(new URL(database.url), { username, password: "change-me" }).href;
  await migrate(urlOf(role));
  for (const one of grants) await admin.unsafe(one);
  const ids = await addReview(urlOf(role));
  return {
    role,
    platform,
    db: database.db,
    platformUrl: urlOf(platform),
    ...ids,
    async drop() {
      await database.drop();
      const server = postgres(process.env["TEST_DATABASE_URL"] ?? "", { max: 1 });
      await server.unsafe(`drop role ${role}, ${platform}`);
      await server.end();
    },
  };
}

/** Adds a review as the owner of the tables. Nothing in these tests looks at its account. */
async function addReview(url: string) {
  const partnerId = 77;
  const owner = connect(url, { max: 1, name: "test" });
  const [row] = await owner.sql<{ id: number }[]>`
    insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, content, reviewed_at,
                         created_at, updated_at)
    values (${partnerId}, 78, 79, 80, 'r-1', 4, '', now(), now(), now()) returning id`;
  await owner.close();
  return { partnerId, reviewId: row?.id ?? 0 };
}
