import { beforeAll, expect, test } from "bun:test";

import { createSecretBox } from "../../../src/lib/secrets.ts";
import { eraseChunk } from "../../../src/tenants/actions/erase.ts";
import { createFakeClock } from "../../support/clock.ts";
import { silentLog } from "../../support/dispatch.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";
import { runCommand } from "../../support/processes/command.ts";
import { addTenants } from "../../support/tenants.ts";
import { placesOf } from "../../support/texts.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));

const masterKey = Buffer.from(crypto.getRandomValues(new Uint8Array(32)));
const box = createSecretBox({ current: masterKey });

beforeAll(() => tenants.superAdmin);

test("the erase command queues the erasure of a user, which the job carries out", async () => {
  const { id, email } = tenants.partners[0].accounts[0].user;
  const asked = await erase(["user", String(id)]);
  expect(asked.status).toBe(0);
  expect(asked.said).toMatch(/^[0-9A-Z]{26} {2}user {6}queued /);
  const deps = { db: database.db, box, clock: createFakeClock(), log: silentLog };
  while ((await eraseChunk(deps)).next !== undefined);
  expect(await placesOf(database.db, box, [email])).toEqual([]);
  const { said } = await erase([]);
  expect(said).toMatch(/ {2}user {6}done .* 1 users/);
  expect(said).not.toContain(email);
});

test("the erase command queues the erasure of a reviewer whose address it reads", async () => {
  const args = ["reviewer", "-", "--partner", String(tenants.partners[0].id)];
  const { status, said } = await erase(args, "ada@mail.test\n");
  expect(status).toBe(0);
  expect(said).toMatch(/ {2}reviewer {2}queued /);
});

test.each([
  [
    ["reviewer", "no address"],
    "reviewer_email must be a single email address without a display name",
  ],
  [
    ["reviewer", "--review", "999"],
    "review_ids must be ids of reviews of the partner or account; these are not: 999",
  ],
  [["reviewer", "a@b.test", "--account", "999"], "account_id is not an account"],
  [["user", "x"], "user_id must be a whole number above 0"],
  [["user", "999"], "user_id is not a user"],
])("the erase command refuses %j and names the field", async (args, message) => {
  const { status, said } = await erase(args);
  expect(status).toBe(1);
  expect(said).toStartWith(message);
});

test.each([
  [["user"]],
  [["reviewer"]],
  [["user", "1", "2"]],
  [["person", "1"]],
  [["--partner", "1"]],
])("the erase command answers %j with a usage line", async (args) => {
  const { status, said } = await erase(args);
  expect(status).toBe(64);
  expect(said).toContain("bun run erase user <id>");
});

/** Runs `bun run erase …` as an operator does. */
function erase(args: readonly string[], input?: string) {
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: "redis://unused.invalid",
    MASTER_KEY: masterKey.toString("base64"),
  };
  return runCommand(["src/operate/main.ts", "erase", ...args], env, { input });
}
