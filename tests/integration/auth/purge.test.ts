import { beforeAll, describe, expect, test } from "bun:test";

import { eq } from "drizzle-orm";
import { decodeProtectedHeader } from "jose";

import type { RawDb } from "../../../db/client.ts";
import { auditLog } from "../../../db/schema/companies.ts";
import { signingKeys, tokens } from "../../../db/schema/tokens.ts";
import { emailCodeLimits, emailCodes, signInLocks } from "../../../db/schema/sign-in.ts";
import { issueToken, type TokenGrant } from "../../../src/auth/sign-in/open-session.ts";
import {
  KEEP_RETIRED_KEY_MS,
  purge,
  PURGE_BATCH,
  PURGE_MARGIN_MS,
  purgeChunk,
} from "../../../src/auth/purge.ts";
import { rotateKeys } from "../../../src/auth/keys/rotate-keys.ts";
import { startApi, type TestApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const clock = fixture(() => createFakeClock());

describe("the purge", () => {
  test("deletes tokens a minute after they expire, not 1 ms earlier, and never one without an expiry", async () => {
    const [short, long, endless] = [
      await grant(),
      await grant({ ttlS: 10_000 }),
      await grant({ kind: "dashboard_pat", ttlS: null, box: api.deps.box }),
    ];
    clock.advance(100_000 + PURGE_MARGIN_MS - 1);
    expect(await purge(api.deps, clock.now())).toMatchObject({ tokens: 0 });
    expect(await isThere(short.jti)).toBe(true);
    clock.advance(1);
    expect(await purge(api.deps, clock.now())).toMatchObject({ tokens: 1 });
    expect(await isThere(short.jti)).toBe(false);
    expect([await isThere(long.jti), await isThere(endless.jti)]).toEqual([true, true]);
    clock.advance(3650 * DAY_MS);
    await purge(api.deps, clock.now());
    expect([await isThere(long.jti), await isThere(endless.jti)]).toEqual([false, true]);
    await database.db.delete(tokens);
  });

  test("deletes codes that have expired and cause no cooldown, and the limits of an email after a day", async () => {
    const email = "a@purge.test";
    const body = { email, type: "forgot_password" };
    const cooling = await startApi({
      db: database.db,
      clock,
      config: { ...api.deps.config, otpTtlS: 10, otpCooldownS: 300 },
    });
    await cooling.call("POST", "/email-otp/resend", { body });
    clock.advance(300_000 + PURGE_MARGIN_MS - 1);
    expect(await purge(cooling.deps, clock.now())).toMatchObject({ codes: 0, codeLimits: 0 });
    clock.advance(1);
    expect(await purge(cooling.deps, clock.now())).toMatchObject({ codes: 1, codeLimits: 0 });
    expect(await database.db.select().from(emailCodes)).toEqual([]);
    clock.advance(DAY_MS - 300_000 - 1);
    expect(await purge(cooling.deps, clock.now())).toMatchObject({ codeLimits: 0 });
    clock.advance(1);
    expect(await purge(cooling.deps, clock.now())).toMatchObject({ codeLimits: 2 });
    expect(await database.db.select().from(emailCodeLimits)).toEqual([]);
  });

  test("deletes locks that are forgotten, and never an active one", async () => {
    const lock = (emailDigest: string, lockedMs: number | null) => ({
      emailDigest,
      failures: 0,
      locks: 1,
      lastFailureAt: clock.now(),
      lockedUntil: lockedMs === null ? null : new Date(clock.now().getTime() + lockedMs),
    });
    await database.db
      .insert(signInLocks)
      .values([lock("open", null), lock("past", 1000), lock("long", 2 * DAY_MS)]);
    clock.advance(DAY_MS + PURGE_MARGIN_MS - 1);
    expect(await purge(api.deps, clock.now())).toMatchObject({ locks: 0 });
    clock.advance(1);
    expect(await purge(api.deps, clock.now())).toMatchObject({ locks: 2 });
    const left = await database.db.select().from(signInLocks);
    expect(left.map((row) => row.emailDigest)).toEqual(["long"]);
  });

  test("deletes a retired key after an hour if no token uses it, and audits that", async () => {
    const endless = await grant({ kind: "dashboard_pat", ttlS: null, box: api.deps.box });
    const kept = decodeProtectedHeader(endless.token).kid ?? "";
    await rotateKeys(api.deps, { isForced: true });
    const { retired: idle } = await rotateKeys(api.deps, { isForced: true });
    const kids = async () => (await database.db.select().from(signingKeys)).map((key) => key.kid);
    clock.advance(KEEP_RETIRED_KEY_MS - 1);
    expect(await purge(api.deps, clock.now())).toMatchObject({ keys: 0 });
    clock.advance(1);
    expect(await purge(api.deps, clock.now())).toMatchObject({ keys: 1 });
    expect(await kids()).toContain(kept);
    expect(await kids()).not.toContain(idle);
    const rows = await database.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.action, "KEY_DROPPED"));
    expect(rows.map((row) => row.details)).toEqual([{ kid: idle }]);
    await database.db.delete(tokens).where(eq(tokens.jti, endless.jti));
    expect(await purge(api.deps, clock.now())).toMatchObject({ keys: 1 });
    expect(await kids()).toHaveLength(2);
    // A new API loads the remaining keys, because this test does not watch the ring as the process does.
    api = await startApi({ db: database.db, clock, config: api.deps.config });
  });

  test("deletes any number of rows in batches, in several processes at once, and each row once", async () => {
    const { db } = database;
    const [key] = await db.select().from(signingKeys).where(eq(signingKeys.state, "current"));
    const dead = PURGE_BATCH * 3 + 7;
    await db.sql`
      insert into tokens (jti, kind, user_id, scope, kid, issued_at, expires_at)
      select 'dead-' || n, 'access', ${tenants.superAdmin.id}, '*', ${key?.kid ?? ""}, now(), '2020-01-01'
      from generate_series(1, ${dead}::int) n`;
    const processes = [db, database.connect(), database.connect(), database.connect()];
    const purgeAll = async (one: RawDb): Promise<number> => {
      const { ["tokens"]: count = 0 } = await purge({ ...api.deps, db: one }, clock.now());
      return count === 0 ? 0 : count + (await purgeAll(one));
    };
    const counts = await Promise.all([...processes, db].map(purgeAll));
    const rest = await purgeAll(db);
    expect(counts.reduce((sum, one) => sum + one, rest)).toBe(dead);
    expect(await db.sql`select 1 from tokens where jti like 'dead-%'`).toHaveLength(0);
  });

  test("skips a row that another transaction has locked", async () => {
    const held = await grant({ ttlS: 1 });
    clock.advance(1_000 + PURGE_MARGIN_MS);
    await database.db.transaction(async (tx) => {
      await tx.sql`select 1 from tokens where jti = ${held.jti} for update`;
      expect(await purge({ ...api.deps, db: database.connect() }, clock.now())).toMatchObject({
        tokens: 0,
      });
    });
    expect(await purge(api.deps, clock.now())).toMatchObject({ tokens: 1 });
  });
});

test("a chunk of the job uses the clock of PostgreSQL and reports whether more may be left", async () => {
  const { db } = database;
  await db.delete(tokens);
  const [key] = await db.select().from(signingKeys).where(eq(signingKeys.state, "current"));
  await db.sql`
    insert into tokens (jti, kind, user_id, scope, kid, issued_at, expires_at)
    select 'dead-' || n, 'access', ${tenants.superAdmin.id}, '*', ${key?.kid ?? ""}, now(), now() - interval '61 seconds'
    from generate_series(1, ${PURGE_BATCH}::int) n`;
  const chunk = () => purgeChunk({ db, config: api.deps.config });
  expect(await chunk()).toMatchObject({ next: "" });
  expect(await db.sql`select from tokens where jti like 'dead-%'`).toHaveLength(0);
  expect(await chunk()).toMatchObject({ next: undefined });
});

const DAY_MS = 24 * 60 * 60 * 1000;

let api: TestApi;

beforeAll(async () => {
  api = await startApi({ db: database.db, clock });
});

async function grant(over: Partial<TokenGrant> = {}) {
  const base = { kind: "access", familyId: null, clientId: null, impersonatorId: null } as const;
  const userId = tenants.superAdmin.id;
  return database.db.transaction((tx) =>
    issueToken(tx, api.deps.keys, {
      ...base,
      userId,
      scope: "*",
      ttlS: 100,
      now: clock.now(),
      ...over,
    }),
  );
}

const isThere = async (jti: string) =>
  (await database.db.select().from(tokens).where(eq(tokens.jti, jti))).length === 1;
