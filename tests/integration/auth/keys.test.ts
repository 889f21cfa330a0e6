import { beforeEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { desc, eq } from "drizzle-orm";
import { calculateJwkThumbprint, createLocalJWKSet, decodeProtectedHeader, jwtVerify } from "jose";

import { auditLog } from "../../../db/schema/companies.ts";
import { signingKeys, tokens } from "../../../db/schema/tokens.ts";
import { rotateKeys } from "../../../src/auth/keys/rotate-keys.ts";
import { openKeyRing, type KeyRing } from "../../../src/auth/keys/key-ring.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { testConfig } from "../../support/api.ts";
import { createFakeClock, type FakeClock } from "../../support/clock.ts";
import { fixture } from "../../support/fixture.ts";
import { until } from "../../support/network/receiver.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { addSigningKeys } from "../../support/signing-keys.ts";

const database = fixture(createDatabase);

describe("opening the key ring", () => {
  test("creates one current and one next key, even if five processes start at once", async () => {
    await removeKeys();
    const rings = await Promise.all([1, 2, 3, 4, 5].map(() => open({ db: database.connect() })));
    expect((await stored()).map((key) => key.state).toSorted()).toEqual(["current", "next"]);
    const signed = await Promise.all(rings.map(sign));
    expect(new Set(signed.map(kidOf)).size).toBe(1);
    const seen = await Promise.all(rings.map((ring) => ring.verify("at+jwt", signed[0] ?? "")));
    expect(seen).toEqual(rings.map(() => claims));
  });

  test("stores private keys sealed, under the thumbprint of the public one", async () => {
    await removeKeys();
    await open();
    for (const key of await stored()) {
      expect(key.sealedPrivateKey).toStartWith("v1.");
      expect(key.publicJwk).not.toHaveProperty("d");
      expect(await calculateJwkThumbprint(key.publicJwk as object, "sha256")).toBe(key.kid);
    }
  });

  test("fails if the stored public key was altered", async () => {
    await open();
    const [first, second] = await stored();
    await database.db
      .update(signingKeys)
      .set({ publicJwk: second?.publicJwk })
      .where(eq(signingKeys.kid, first?.kid ?? ""));
    expect(await failureOf(open())).toMatch("is not the one that was stored");
  });
});

describe("a signed token", () => {
  test("names its key and type, and verifies only as that type", async () => {
    const ring = await open();
    const access = await ring.sign("at+jwt", claims);
    const refresh = await ring.sign("rt+jwt", { ...claims, exp: 4_102_444_800, act: { sub: "2" } });
    expect(decodeProtectedHeader(access.token)).toEqual({
      alg: "RS256",
      kid: access.kid,
      typ: "at+jwt",
    });
    expect(await ring.verify("at+jwt", access.token)).toEqual(claims);
    expect(await ring.verify("rt+jwt", refresh.token)).toMatchObject({
      exp: 4_102_444_800,
      act: { sub: "2" },
    });
    expect(await ring.verify("rt+jwt", access.token)).toBeUndefined();
    expect(await ring.verify("at+jwt", refresh.token)).toBeUndefined();
  });

  test("can be verified with the published keys, including the next one", async () => {
    const ring = await open();
    const { keys } = ring.jwks();
    expect(keys).toHaveLength(2);
    for (const key of keys)
      expect(Object.keys(key).toSorted()).toEqual(["alg", "e", "kid", "kty", "n", "use"]);
    await rotate();
    const later = await sign(await open());
    // The key set before the rotation.
    await jwtVerify(later, createLocalJWKSet({ keys }), { issuer: config.serverRoot });
  });
});

describe("rotation", () => {
  test("moves next to current and current to retired, creates a new next key, and is audited", async () => {
    await open();
    const before = new Map((await stored()).map((key) => [key.state, key.kid]));
    clock.advance(1000);
    const rotation = await rotate();
    expect(rotation).toMatchObject({
      retired: before.get("current") ?? "",
      current: before.get("next") ?? "",
    });
    const after = await stored();
    expect(after.find((key) => key.kid === rotation.retired)).toMatchObject({
      state: "retired",
      retiredAt: clock.now(),
    });
    expect(after.find((key) => key.kid === rotation.current)).toMatchObject({
      state: "current",
      activatedAt: clock.now(),
    });
    expect(after.find((key) => key.kid === rotation.next)).toMatchObject({
      state: "next",
      createdAt: clock.now(),
    });
    const [entry] = await database.db.select().from(auditLog).orderBy(desc(auditLog.id));
    expect(entry).toMatchObject({ action: "KEY_ROTATED", actorId: null, details: rotation });
  });

  test("of four at once loses no key: each happens completely or not at all", async () => {
    await open();
    const outcomes = await Promise.allSettled([1, 2, 3, 4].map(rotate));
    const done = outcomes.filter((outcome) => outcome.status === "fulfilled").length;
    expect(done).toBeGreaterThan(0);
    const states = (await stored()).map((key) => key.state).toSorted();
    expect(states).toEqual([
      "current",
      "next",
      ...Array.from({ length: done }, () => "retired" as const),
    ]);
  });

  test("is noticed by a running process within five seconds, and old tokens stay valid through two rotations", async () => {
    const ring = await open();
    const stop = new AbortController();
    const watching = ring.watch(stop.signal);
    const old = await sign(ring);
    for (const turn of [1, 2]) {
      const { current } = await rotate();
      clock.advance(5_000);
      await until("the new key", async () => kidOf(await sign(ring)) === current);
      expect(ring.jwks().keys).toHaveLength(2 + turn);
      expect(await ring.verify("at+jwt", old)).toEqual(claims);
    }
    stop.abort();
    await watching;
    expect(clock.sleepers).toBe(0);
  });

  test("twice in a row is noticed through the unknown key id, at most once in 200 ms", async () => {
    let looks = 0;
    const { db } = database;
    const ring = await open({ db: counting(db, () => looks++) });
    clock.advance(200);
    await rotate();
    await rotate();
    const token = await sign(await open());
    looks = 0;
    expect(await ring.verify("at+jwt", token)).toEqual(claims);
    expect(looks).toBe(1);
    const invented = token.replace(/^[^.]+/, encodeHeader("unknown"));
    for (let i = 0; i < 5; i++) expect(await ring.verify("at+jwt", invented)).toBeUndefined();
    clock.advance(199);
    expect(await ring.verify("at+jwt", invented)).toBeUndefined();
    expect(looks).toBe(1);
    clock.advance(1);
    expect(await ring.verify("at+jwt", invented)).toBeUndefined();
    expect(looks).toBe(2);
  });
});

function encodeHeader(kid: string): string {
  return Buffer.from(JSON.stringify({ alg: "RS256", typ: "at+jwt", kid })).toString("base64url");
}

/** Calls back on every select. */
function counting(db: TestDatabase["db"], onSelect: () => void): TestDatabase["db"] {
  return new Proxy(db, {
    get(target, name) {
      if (name === "select") onSelect();
      return Reflect.get(target, name);
    },
  });
}

const masterKey = randomBytes(32);

const box = createSecretBox({ current: masterKey });

const config = testConfig({ masterKey });

const silent = { debug() {}, info() {}, warn() {}, error() {} };

const claims = {
  sub: "1",
  jti: "abc",
  exp: undefined,
  client_id: "reviewrelay",
  scope: "*",
  act: undefined,
};

let clock: FakeClock;

beforeEach(async () => {
  clock = createFakeClock();
  await removeKeys();
  await addSigningKeys(database.db, box, clock.now());
});

async function removeKeys(): Promise<void> {
  await database.db.delete(tokens);
  await database.db.delete(signingKeys);
}

const open = (over: Partial<Parameters<typeof openKeyRing>[0]> = {}) =>
  openKeyRing({ db: database.db, box, clock, log: silent, config, ...over });

const rotate = () => rotateKeys({ db: database.db, box, clock }, { isForced: true });

const stored = () => database.db.select().from(signingKeys).orderBy(signingKeys.createdAt);

const kidOf = (token: string) => decodeProtectedHeader(token).kid ?? "";

const sign = async (ring: KeyRing) => (await ring.sign("at+jwt", claims)).token;

/** Returns the message of the error that `work` throws; empty if it succeeds. */
const failureOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "",
    (error: unknown) => String(error),
  );
