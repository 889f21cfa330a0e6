import { afterAll, beforeAll, expect, test } from "bun:test";

import { decodeJwt } from "jose";

import { connect, type RawDb } from "../../../db/client.ts";
import { createAuthenticate } from "../../../src/auth/access/authenticate.ts";
import { deleteToken } from "../../../src/auth/tokens/queries.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { startSignInWorld } from "../../support/sign-in.ts";

test("concurrent requests share their look-ups, and each gets its own answer", async () => {
  const authenticate = createAuthenticate({ ...api.deps, db });
  const users = tenants.partners.flatMap(({ owner, admin }) => [owner.id, admin.id]);
  const granted = await Promise.all(users.map(grant));
  const revoked = granted[1]?.jti ?? "";
  await deleteToken(database.db, revoked);
  lookUps = 0;
  const asked = Array.from({ length: 40 }, (_, n) => n % granted.length);
  const answers = await Promise.all(
    asked.map((n) =>
      authenticate(callWith(granted[n]?.token ?? "")).then(
        ({ userId }) => userId,
        (error: unknown) => String(fieldsOf(error)["code"]),
      ),
    ),
  );
  expect(answers).toEqual(
    asked.map((n) => (granted[n]?.jti === revoked ? "unauthenticated" : (users[n] ?? 0))),
  );
  // Signatures are verified first and in no fixed order, so the sizes of the shared look-ups vary.
  expect(lookUps).toBeLessThan(20);
});

test("a token that is revoked while others are looked up is rejected at the next request", async () => {
  const authenticate = createAuthenticate({ ...api.deps, db });
  const [mine, other] = await Promise.all([
    grant(tenants.partners[0].owner.id),
    grant(tenants.partners[1].owner.id),
  ]);
  const under = Promise.allSettled(
    [other, other, mine].map(({ token }) => authenticate(callWith(token))),
  );
  await deleteToken(database.db, mine.jti);
  await expect(authenticate(callWith(mine.token))).rejects.toMatchObject({
    code: "unauthenticated",
  });
  await under;
});

const world = await startSignInWorld();

const { database, tenants, api } = world;

let db: RawDb;

let lookUps = 0;

beforeAll(() => {
  const onStatement = (text: string) => {
    if (text.includes("from tokens t")) lookUps += 1;
  };
  db = connect(database.url, { max: 4, name: "test", onStatement });
});

afterAll(async () => {
  await db.close();
  await world.stop();
});

async function grant(userId: number): Promise<{ token: string; jti: string }> {
  const token = await world.grant({ userId });
  return { token, jti: decodeJwt(token).jti ?? "" };
}

const callWith = (token: string) => ({
  requestId: "test",
  ip: "127.0.0.1",
  userAgent: null,
  headers: new Headers({ Authorization: `Bearer ${token}` }),
});
