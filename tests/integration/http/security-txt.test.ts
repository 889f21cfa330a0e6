import { expect, test } from "bun:test";

import { readConfig } from "../../../src/lib/config.ts";
import { startApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";

const database = fixture(createDatabase);
const PATH = "/.well-known/security.txt";

async function ask(env: Readonly<Record<string, string>>) {
  const { securityContacts, masterKey } = readConfig({ ...REQUIRED, ...env });
  const clock = createFakeClock(new Date("2026-06-01T12:00:00Z"));
  const api = await startApi({ db: database.db, clock, config: { securityContacts, masterKey } });
  return api.call("GET", PATH, { root: true });
}

test("security.txt is 404 without a contact", async () => {
  expect((await ask({})).status).toBe(404);
});

test("security.txt names each contact, its own address and an end 180 days ahead", async () => {
  const { status, headers, text } = await ask({
    SECURITY_CONTACT: "mailto:security@reviews.example, https://reviews.example/report",
  });
  expect([status, headers.get("content-type")]).toEqual([200, "text/plain; charset=utf-8"]);
  expect(text.split("\n")).toEqual([
    "Contact: mailto:security@reviews.example",
    "Contact: https://reviews.example/report",
    "Expires: 2026-11-28T12:00:00.000+00:00",
    "Canonical: http://localhost:3000/.well-known/security.txt",
    "",
  ]);
});

test("a line break in a setting adds no field to security.txt", async () => {
  const { text } = await ask({ SECURITY_CONTACT: "https://reviews.example/re\nport" });
  expect(text.trimEnd().split("\n")).toHaveLength(3);
});

const REQUIRED = {
  DATABASE_URL: "postgres://unused.invalid/test",
  REDIS_URL: "redis://unused.invalid",
  MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
};
