import { describe, expect, test } from "bun:test";

import { eq } from "drizzle-orm";

import { auditLog } from "../../../db/schema/companies.ts";
import { signInLocks } from "../../../db/schema/sign-in.ts";
import { emailDigest } from "../../../src/auth/email.ts";
import type { Passwords } from "../../../src/lib/password.ts";
import { PASSWORD, startApi, type TestApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants, addUser } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

/** A fake clock and cheap passwords, for tests that need minutes. */

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
/** Real hashes and a clock that stands still, because a busy machine may need longer than a lock of 60 s lasts. */
const api = fixture(() => startApi({ db: database.db, clock: createFakeClock() }));
const timed = fixture(() =>
  startApi({ db: database.db, clock, passwords: plain, config: api.deps.config }),
);

describe("parallel attempts", () => {
  test.each(["known", "unknown"] as const)(
    "with 100 wrong passwords for an email that is %s get exactly 5 answers about a password",
    async (known) => {
      const email = await freshEmail(known);
      const answers = await Promise.all(
        Array.from({ length: 100 }, () => attempt(api, email, "wrong")),
      );
      expect(counts(answers)).toEqual({ 401: 5, 429: 95 });
      expect(await lockOf(email)).toMatchObject({ failures: 0, locks: 1 });
    },
  );

  test("all succeed with 50 correct passwords, even after 4 wrong ones", async () => {
    const email = await freshEmail("known");
    for (let i = 0; i < 4; i++) await attempt(api, email, "wrong");
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => attempt(api, email, PASSWORD)),
    );
    expect(counts(answers)).toEqual({ 200: 50 });
    expect(await lockOf(email)).toMatchObject({ failures: 0, locks: 0, lockedUntil: null });
  });
});

test("40 correct logins of one user lock nothing while they hash, and all succeed when they end at once", async () => {
  const hashed = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  let hashing = 0;
  const verify = async (password: string) => {
    if (++hashing === 40) begun.resolve();
    await hashed.promise;
    return password === PASSWORD;
  };
  const passwords: Passwords = { ...plain, verify };
  const held = await startApi({ db: database.db, clock, passwords, config: api.deps.config });
  const email = await freshEmail("known");
  const answers = Promise.all(Array.from({ length: 40 }, () => attempt(held, email, PASSWORD)));
  await begun.promise;
  expect(
    await database.db.sql`select from users where email = ${email} for update nowait`,
  ).toHaveLength(1);
  expect(await lockOf(email)).toBeUndefined();
  hashed.resolve();
  expect(counts(await answers)).toEqual({ 200: 40 });
});

describe("the sign-in lock", () => {
  test("starts after the fifth wrong password, rejects the sixth and the correct one, and expires", async () => {
    const email = await freshEmail("known", `plain ${PASSWORD}`);
    expect(await wrong(email, 6)).toEqual([401, 401, 401, 401, 401, 429]);
    clock.advance(59_999);
    expect((await attempt(timed, email, PASSWORD)).status).toBe(429);
    clock.advance(1);
    expect((await attempt(timed, email, PASSWORD)).status).toBe(200);
  });

  test.each(["known", "unknown"] as const)(
    "of an email that is %s lasts 60, 120, 240, 480, 900 and 900 s",
    async (known) => {
      const email = await freshEmail(known, `plain ${PASSWORD}`);
      for (const seconds of [...SCHEDULE_S, 900]) {
        expect(await wrong(email, 5)).toEqual([401, 401, 401, 401, 401]);
        const refused = await attempt(timed, email, "wrong");
        expect(refused.headers.get("retry-after")).toBe(String(seconds));
        clock.advance(seconds * 1000 - 1);
        expect((await attempt(timed, email, "wrong")).status).toBe(429);
        clock.advance(1);
      }
    },
  );

  test("is neither counted up nor extended by attempts meanwhile", async () => {
    const email = await freshEmail("unknown");
    await wrong(email, 5);
    const before = await lockOf(email);
    clock.advance(30_000);
    expect(await wrong(email, 10)).toEqual(Array.from({ length: 10 }, () => 429));
    expect(await lockOf(email)).toEqual(before);
    clock.advance(30_000);
    expect(await wrong(email, 1)).toEqual([401]);
  });

  test("is forgotten on success, so the next one is as short as the first", async () => {
    const email = await freshEmail("known", `plain ${PASSWORD}`);
    await wrong(email, 5);
    clock.advance(60_000);
    await attempt(timed, email, PASSWORD);
    expect(await wrong(email, 5)).toEqual([401, 401, 401, 401, 401]);
    expect((await attempt(timed, email, "wrong")).headers.get("retry-after")).toBe("60");
  });

  test("is forgotten 24 h after the last wrong password, and not 1 ms earlier", async () => {
    const [early, late] = [await freshEmail("unknown"), await freshEmail("unknown")];
    await wrong(early, 4);
    await wrong(late, 4);
    clock.advance(DAY_MS - 1);
    expect(await wrong(early, 2)).toEqual([401, 429]);
    clock.advance(1);
    expect(await wrong(late, 4)).toEqual([401, 401, 401, 401]);
    // The number of locks is forgotten as well, so that the next lock is as short as the first.
    clock.advance(DAY_MS);
    expect(await wrong(early, 5)).toEqual([401, 401, 401, 401, 401]);
    expect((await attempt(timed, early, "wrong")).headers.get("retry-after")).toBe("60");
  });

  test("answers with code, field and Retry-After, the same bytes for known and unknown emails", async () => {
    const answers: { text: string; headers: [string, string][] }[] = [];
    for (const known of ["known", "unknown"] as const) {
      const email = await freshEmail(known);
      await wrong(email, 5);
      const { text, headers } = await attempt(timed, email, "wrong");
      answers.push({ text, headers: [...headers] });
    }
    expect(answers[0]).toEqual(answers[1] ?? { text: "", headers: [] });
    expect(JSON.parse(answers[0]?.text ?? "")).toEqual({
      message: "Too many wrong passwords; sign-in is temporarily locked.",
      code: "account_locked",
      request_id: "r",
      errors: { email: ["is locked after too many wrong passwords; try again in 60 s"] },
    });
  });

  test("is audited once, with the user if there is one, in addition to five failures", async () => {
    const email = await freshEmail("known");
    for (let i = 0; i < 8; i++) await attempt(timed, email, "wrong", "audited-lock");
    const rows = await database.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.requestId, "audited-lock"))
      .orderBy(auditLog.id);
    const failed = Array.from({ length: 5 }, () => "AUTH_LOGIN_FAILED");
    expect(rows.map((row) => row.action)).toEqual([...failed, "AUTH_LOCKED"]);
    expect(new Set(rows.map((row) => row.actorId)).size).toBe(1);
    expect(rows[0]?.actorId).not.toBeNull();
  });
});

const clock = createFakeClock();

const plain: Passwords = {
  hash: async (password) => `plain ${password}`,
  verify: async (password, hash) => hash === `plain ${password}`,
  needsRehash: () => false,
  isBusy: false,
};

const SCHEDULE_S = [60, 120, 240, 480, 900];

const DAY_MS = 24 * 60 * 60 * 1000;

let users = 0;

/** Returns a new email for each test, known or unknown. */
async function freshEmail(known: "known" | "unknown", passwordHash?: string): Promise<string> {
  const email = `lock-${++users}@p1.test`;
  const user = { companyId: tenants.partners[0].id, role: "partner_admin", email } as const;
  if (known === "known")
    await addUser(database.db, { ...user, ...(passwordHash && { passwordHash }) });
  return email;
}

function attempt(on: TestApi, email: string, password: string, requestId = "r") {
  const headers = { "X-Request-Id": requestId };
  return on.call("POST", "/login", { body: { email, password }, headers });
}

function counts(answers: readonly { status: number }[]): Record<number, number> {
  const count: Record<number, number> = {};
  for (const { status } of answers) count[status] = (count[status] ?? 0) + 1;
  return count;
}

/** Sends `times` wrong passwords one after the other and returns the answers. */
async function wrong(email: string, times: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < times; i++) statuses.push((await attempt(timed, email, "wrong")).status);
  return statuses;
}

const lockOf = async (email: string) => {
  const rows = await database.db
    .select()
    .from(signInLocks)
    .where(eq(signInLocks.emailDigest, emailDigest(email)));
  return rows[0];
};
