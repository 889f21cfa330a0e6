// What the database, the role or a pooler sets as a default belongs to other programs: it changes nothing of the product.
import { beforeAll, describe, expect, test } from "bun:test";

import { connect, type RawDb } from "../../../db/client.ts";
import { LIMITS } from "../../../db/limits.ts";
import { migrate } from "../../../db/migrate.ts";
import { serverFault, sessionFault } from "../../../db/session-settings.ts";
import {
  FOREIGN,
  hostileSettings,
  STATED_NAMES,
} from "../../../scripts/demo/stores/foreign-settings.ts";
import { SHADOWS } from "../../../scripts/demo/stores/shadows.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";

const database = fixture(() => createDatabase("defaults"));
let name: string;
let known: Set<string>;
/** The settings of a session under the defaults of PostgreSQL. */
let usual: Readonly<Record<string, string>>;

beforeAll(async () => {
  name = new URL(database.url).pathname.slice(1);
  const rows = await database.db.sql<{ name: string }[]>`select name from pg_settings`;
  known = new Set(rows.map((row) => row.name));
  await database.db.sql.unsafe(SHADOWS);
  usual = await withPool((db) => statedBy(db));
});

test("every setting that a session can get from a database or a role is classified", async () => {
  const rows = await database.db.sql<{ name: string }[]>`
    select name from pg_settings where context in ('user', 'superuser') and name not like '%.%' order by name`;
  const open = rows.map((row) => row.name).filter((one) => !FOREIGN.has(one));
  // State a new setting in db/session-settings.ts, or say in scripts/demo/stores/foreign-settings.ts why it changes nothing.
  expect(open).toEqual([]);
});

describe("under a hostile default of the database and of the role in the database", () => {
  for (const [setting, { hostile, because }] of FOREIGN)
    if (hostile !== undefined)
      test(`${setting} = ${hostile}, ${because === undefined ? "a session has its own" : "statements read the same"}`, async () => {
        if (!known.has(setting)) return;
        await withDefaults([[setting, hostile]], async () => {
          await withPool(async (db) => {
            if (because === undefined) expect(await statedBy(db)).toEqual(usual);
            expect(await read(db)).toEqual(VALUES);
            expect(await db.transaction((tx) => read(tx))).toEqual(VALUES);
          });
        });
      });

  test("with all of them together, sessions with and without time limits have what they state", async () => {
    await withDefaults(hostileSettings(known), async () => {
      await withPool(async (db) => {
        expect(await statedBy(db)).toEqual(usual);
        expect([await serverFault(db), await sessionFault(db)]).toEqual([undefined, undefined]);
        expect(await read(db)).toEqual(VALUES);
      });
      const db = connect(database.url, { max: 1, name: "test", limits: LIMITS.requests });
      expect(await statedBy(db)).toEqual({
        ...usual,
        idle_in_transaction_session_timeout: "10000",
        lock_timeout: "2000",
        statement_timeout: "10000",
      });
      await db.close();
      expect(await migrate(database.url)).toBe(0);
    });
  });
});

const AT = new Date("2026-02-01T03:04:05.678Z");

const VALUES = {
  at: AT,
  at_text: "2026-02-01T03:04:05.678+00:00",
  // A backslash, a zero, and bytes that are no text.
  bytes: Buffer.from([0, 92, 120, 255]),
  share: 1 / 3,
  words: ["a", "\\'"],
  nulls: 1,
  none: null,
  users: 0,
  isToday: true,
};

/** Reads values whose texts depend on the settings of a session. */
async function read({ sql }: Pick<RawDb, "sql">) {
  const [row] = await sql`
    select ${AT}::timestamptz as at, to_json(${AT}::timestamptz) #>> '{}' as at_text, '\\x005c78ff'::bytea as bytes,
           (1.0 / 3)::float8 as share, '{a,"\\\\''"}'::text[] as words,
           (select count(*)::int from unnest('{a,NULL}'::text[]) one where one is null) as nulls, nullif('', '') as none,
           (select count(*)::int from users where email = 'a') as users, now() > '2020-01-01' as "isToday"`;
  return row;
}

async function statedBy({ sql }: RawDb): Promise<Record<string, string>> {
  const rows = await sql<{ name: string; setting: string }[]>`
    select name, setting from pg_settings where name = any(${STATED_NAMES}::text[]) order by name`;
  return Object.fromEntries(rows.map((row) => [row.name, row.setting]));
}

async function withPool<T>(work: (db: RawDb) => Promise<T>): Promise<T> {
  const db = connect(database.url, { max: 1, name: "test" });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

/** Sets defaults of the database, and of the role in it, while `work` runs. */
async function withDefaults(
  settings: readonly (readonly [string, string])[],
  work: () => Promise<void>,
): Promise<void> {
  const targets = [`database "${name}"`, `role current_user in database "${name}"`];
  const { sql } = database.db;
  try {
    for (const [setting, value] of settings)
      for (const one of targets)
        await sql.unsafe(`alter ${one} set ${setting} = ${isList(setting) ? value : `'${value}'`}`);
    await work();
  } finally {
    for (const one of targets) await sql.unsafe(`alter ${one} reset all`);
  }
}

const isList = (setting: string) => ["search_path"].includes(setting);
