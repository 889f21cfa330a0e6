// Sign-ins while very many wrong passwords wait for their hash (contract 3.7).
import { expect, test } from "bun:test";

import { createPasswords } from "../../../src/lib/password.ts";
import { PASSWORD, startApi } from "../../support/api.ts";
import { fixture } from "../../support/fixture.ts";
import { until } from "../../support/network/receiver.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";

/** Enough for several seconds of hashes, one after the other. */
const STRANGERS = 60;

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const passwords = createPasswords({ running: 1, waiting: 512 });
const api = fixture(() =>
  startApi({
    db: database.db,
    passwords,
    config: { trustedProxies: ["127.0.0.1"] },
  }),
);

test("a person whose address signed them in before does not wait for strangers at as many addresses", async () => {
  const { owner } = tenants.partners[0];
  const home = "198.51.100.7";
  expect(await signIn(owner.email, home)).toBe(200);
  const crowd = flood();
  await until("the crowd", () => passwords.load().waiting > STRANGERS - 10);
  const before = crowd.answers.length;
  expect(await signIn(owner.email, home)).toBe(200);
  // At most one hash is ahead. A few more may end while the request reads the database.
  expect(passwords.load().waiting).toBeGreaterThan(STRANGERS / 2);
  expect(crowd.answers.length - before).toBeLessThan(STRANGERS / 4);
  await crowd.ended;
  expect(new Set(crowd.answers)).toEqual(new Set([401]));
});

test("a newcomer waits for its turn, and is not refused", async () => {
  const { owner } = tenants.partners[1];
  const crowd = flood();
  await until("the crowd", () => passwords.load().waiting > STRANGERS - 10);
  expect(await signIn(owner.email, "198.51.100.8")).toBe(200);
  await crowd.ended;
  expect(new Set(crowd.answers)).toEqual(new Set([401]));
});

async function signIn(email: string, from: string, password = PASSWORD): Promise<number> {
  const headers = { "X-Forwarded-For": from };
  const { status } = await api.call("POST", "/login", { headers, body: { email, password } });
  return status;
}

function flood() {
  const answers: number[] = [];
  const all = Array.from({ length: STRANGERS }, async (_, n) => {
    answers.push(await signIn(`nobody-${n}@flood.test`, `203.0.113.${n}`, "wrong password"));
  });
  return { answers, ended: Promise.all(all) };
}
