import { describe, expect, test } from "bun:test";

import { decodeProtectedHeader } from "jose";

import { startApi, type TestApi } from "../../support/api.ts";
import { createDatabase } from "../../support/postgres.ts";
import { runCommand } from "../../support/processes/command.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));

describe("the keys command", () => {
  test("reports an empty key ring and does not rotate it", async () => {
    expect(await keys([])).toMatchObject({
      status: 0,
      said: expect.stringContaining("no signing keys"),
    });
    const refused = await keys(["rotate"]);
    expect(refused.status).toBe(1);
    expect(refused.said).toContain("Start the API once");
  });

  test("lists the keys with their use and without secrets", async () => {
    api = await startApi({ db: database.db, config: { masterKey } });
    const token = await api.login(tenants.superAdmin.email);
    const { status, said } = await keys([]);
    expect(status).toBe(0);
    const lines = said.trim().split("\n");
    expect(lines).toHaveLength(2);
    expect(lines.find((line) => line.includes(" current "))).toContain(
      decodeProtectedHeader(token).kid ?? "",
    );
    expect(lines.find((line) => line.includes(" current "))).toEndWith("1 live token");
    expect(lines.find((line) => line.includes(" next "))).toEndWith("0 live tokens");
    expect(said).not.toContain("v1.");
  });

  test("does not rotate to a key that was published within the hour", async () => {
    const { status, said } = await keys(["rotate"]);
    expect(status).toBe(1);
    expect(said).toMatch(/^Nothing was changed\. The next key \S+ was published at \S+, .*--force/);
  });

  test("rotates twice by force, and tokens of the first key stay valid", async () => {
    const token = await api.login(tenants.superAdmin.email);
    for (const retired of [1, 2]) {
      const { status, said } = await keys(["rotate", "--force"]);
      expect(status).toBe(0);
      expect(said).toStartWith("Rotated: ");
      expect(said.match(/ retired {2}since/g)).toHaveLength(retired);
    }
    const late = await startApi({ db: database.connect(), config: { masterKey } });
    for (const on of [api, late])
      expect((await on.call("GET", "/verify-token", { token })).status).toBe(200);
  });

  test("rejects unknown arguments with a usage line", async () => {
    for (const args of [["turn"], ["rotate", "now"]]) {
      const { status, said } = await keys(args);
      expect(status).toBe(64);
      expect(said).toStartWith("Usage: bun run keys");
    }
  });

  test("names every missing setting", async () => {
    const { status, said } = await keys([], { DATABASE_URL: "", MASTER_KEY: "" });
    expect(status).toBe(78);
    expect(said).toContain("DATABASE_URL is required");
    expect(said).toContain("MASTER_KEY is required");
  });
});

let api: TestApi;

const masterKey = Buffer.from(crypto.getRandomValues(new Uint8Array(32)));

/** Runs `bun run keys …` as an operator does. */
const keys = (args: readonly string[], env: Record<string, string> = {}) =>
  runCommand(["src/operate/main.ts", "keys", ...args], {
    DATABASE_URL: database.url,
    REDIS_URL: "redis://unused.invalid",
    MASTER_KEY: masterKey.toString("base64"),
    ...env,
  });
