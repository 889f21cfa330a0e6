// Tests the messages of processes and commands that cannot start: one plain line and no stack.
import { afterAll, beforeAll, describe, expect, mock, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { restartParts } from "../../../scripts/demo/parts.ts";
import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { connect } from "../../../db/client.ts";
import { ownMigrations, schemaError, schemaState } from "../../../db/migrate.ts";
import { EXIT_CONFIG } from "../../../src/lib/config.ts";
import { ApiProcess } from "../../support/processes/api-process.ts";
import { runCommand } from "../../support/processes/command.ts";
import { createDatabase } from "../../support/postgres.ts";
import { fixture } from "../../support/fixture.ts";

const PROCESSES = [
  ["the API", ["src/main.ts", "api"]],
  ["a dispatcher", ["dispatcher/main.ts", "dispatcher"]],
] as const;

const database = fixture(() => createDatabase("roles"));

test.each(PROCESSES)(
  "%s reports missing migrations and the command that applies them",
  async (_name, args) => {
    const empty = await createDatabase();
    await empty.db.sql`drop schema drizzle cascade`;
    const { status, said } = await runCommand(args, { ...settings, DATABASE_URL: empty.url });
    await empty.drop();
    expect(said).toMatch(
      /The database lacks \d+ migrations of this version: run `bun run migrate`/,
    );
    expect(said).not.toMatch(STACK);
    expect(status).toBe(EXIT_CONFIG);
  },
);

// The dispatcher begins with the same functions (src/process.ts).
describe("the API", () => {
  const args = ["src/main.ts", "api"];

  test("rejects a database with foreign migrations", async () => {
    const foreign = await createDatabase();
    await foreign.db.sql`update drizzle.__drizzle_migrations set created_at = created_at - 1`;
    const { status, said } = await runCommand(args, { ...settings, DATABASE_URL: foreign.url });
    await foreign.drop();
    expect(said).toContain("created by another version of ReviewRelay");
    expect(status).toBe(EXIT_CONFIG);
  });

  test("names METRICS_PORT if it is in use", async () => {
    const taken = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const port = String(taken.port);
    const { status, said } = await runCommand(args, { ...settings, METRICS_PORT: port });
    taken.stop(true);
    expect(said).toContain(`METRICS_PORT ${port} on 127.0.0.1 is in use by another program`);
    expect(said).not.toMatch(STACK);
    expect(status).toBe(1);
  });

  test("names METRICS_HOST if it is not an address of this machine, and warns of a removed setting", async () => {
    const env = {
      ...settings,
      METRICS_PORT: "9464",
      METRICS_HOST: "203.0.113.1",
      SLOW_STATEMENT_MS: "0",
    };
    const { status, said } = await runCommand(args, env);
    expect(said).toContain('"event":"setting.removed","setting":"SLOW_STATEMENT_MS"');
    expect(said).toContain("that host is not an address of this machine");
    expect(said).not.toContain("stop that program");
    expect(status).toBe(1);
  });

  test("suggests a remedy for a master key of another database in one line, without the key", async () => {
    const other = await createDatabase();
    await other.db.sql`
      insert into review_sites (slug, name, sealed_secret) values ('x', 'X', 'v1.0badc0de.x')`;
    const { status, said } = await runCommand(args, { ...settings, DATABASE_URL: other.url });
    await other.drop();
    expect(said.split("\n").filter((line) => line !== "" && !line.startsWith("{"))).toEqual([
      expect.stringMatching(
        /^The master key is wrong: review_sites\.sealed_secret .* Set MASTER_KEY \(or MASTER_KEY_FILE\)/,
      ),
    ]);
    expect(said).not.toContain(String(settings["MASTER_KEY"]));
    expect(status).toBe(EXIT_CONFIG);
  });
});

test("the API names PORT if another API uses it", async () => {
  const first = await ApiProcess.start(settings);
  const port = new URL(first.root).port;
  const { status, said } = await runCommand(["src/main.ts", "api"], { ...settings, PORT: port });
  first.kill();
  await first.exited();
  expect(said).toContain(`PORT ${port} on 127.0.0.1 is in use by another program`);
  expect(status).toBe(1);
});

test("a user without access to the list of migrations is accepted", async () => {
  const { db, url } = database;
  const name = `reader_${crypto.randomUUID().slice(0, 8)}`;
  await db.sql.unsafe(`create role ${name} login password 'reader'`);
  const address = new URL(url);
  address.username = name;
  address.password = "reader";
  const reader = connect(address.href, { max: 1, name: "test" });
  try {
    expect(await schemaState(reader)).toEqual({ kind: "hidden" });
    expect(await schemaError(reader)).toBeUndefined();
  } finally {
    await reader.close();
    await db.sql.unsafe(`drop role ${name}`);
  }
});

describe("migrate", () => {
  const migrate = (env: Record<string, string>) =>
    runCommand(["src/operate/main.ts", "migrate"], env);

  test("names its only setting", async () => {
    expect(await migrate({})).toEqual({
      status: EXIT_CONFIG,
      said: "DATABASE_URL is required (postgres:// or postgresql://…).\n",
    });
  });

  test("reads the address from a file", async () => {
    const file = join(folder, "url");
    writeFileSync(file, `${database.url}\n`);
    expect(await migrate({ DATABASE_URL_FILE: file })).toEqual({
      status: 0,
      said: "The database has the current schema.\n",
    });
  });

  test("leaves the schema of a later version alone", async () => {
    const later = await createDatabase();
    await later.db.sql`
      insert into drizzle.__drizzle_migrations (hash, created_at) values ('later', 1999999999999)`;
    const { status, said } = await migrate({ DATABASE_URL: later.url });
    await later.drop();
    expect(said).toContain(
      "The database schema is ahead by 1 (2033-05-18T03:33:19.999Z, SHA-256 later…)",
    );
    expect(status).toBe(0);
  });

  test("says that the database cannot be reached", async () => {
    const { status, said } = await migratingNowhere;
    expect(said).toContain("DATABASE_URL cannot be reached: connect ECONNREFUSED");
    expect(said).not.toContain("secret");
    expect(said).not.toMatch(STACK);
    expect(status).toBe(1);
  });
});

test("`bun run dev` leaves its parts as they are while the sources have a migration that the database lacks", async () => {
  const lacking = await createDatabase();
  const said = spyOn(console, "error").mockImplementation(() => {});
  const restart = mock();
  await restartParts([{ restart }], lacking.url);
  expect([restart.mock.calls.length, said.mock.calls]).toEqual([1, []]);
  await lacking.db.sql`
    delete from drizzle.__drizzle_migrations where created_at = (select max(created_at) from drizzle.__drizzle_migrations)`;
  await restartParts([{ restart }], lacking.url);
  await lacking.drop();
  const [line] = said.mock.calls[0] ?? [];
  said.mockRestore();
  expect(restart).toHaveBeenCalledTimes(1);
  expect(line).toStartWith(`The database lacks ${ownMigrations().at(-1)?.name}, so`);
  expect(line).toContain("press Ctrl-C and start again: the start applies it.");
});

test("try.ts suggests starting the demo if it does not run", async () => {
  const demo = { server_root: `http://${NOBODY}`, base_url: `http://${NOBODY}/api/v1` };
  const users = [{ role: "partner_owner", email: "a@b.example", password: "x", partner_id: 1 }];
  writeFileSync(join(folder, "demo.json"), JSON.stringify({ ...demo, users }));
  const { status, said } = await runCommand(["scripts/try.ts"], { DATA_DIR: folder });
  expect(said).toContain(`No server responds at http://${NOBODY}: start the demo first`);
  expect(said).not.toMatch(STACK);
  expect(status).toBe(1);
});

test("try.ts suggests a remedy if the partner already has a subscription", async () => {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) =>
      request.url.endsWith("/login")
        ? Response.json({ token: "x" })
        : Response.json({ code: "slot_occupied" }, { status: 409 }),
  });
  const root = server.url.origin;
  const users = [{ role: "partner_owner", email: "a@b.example", password: "x", partner_id: 1 }];
  const demo = { server_root: root, base_url: `${root}/api/v1`, users };
  writeFileSync(join(folder, "demo.json"), JSON.stringify(demo));
  const { status, said } = await runCommand(["scripts/try.ts"], { DATA_DIR: folder });
  await server.stop(true);
  expect(said).toContain(`delete it at ${root}/dashboard`);
  expect(said).not.toContain("slot_occupied");
  expect(status).toBe(1);
});

/** An address where nothing listens: the discard port, which only root may bind. */
const NOBODY = "127.0.0.1:9";

let settings: Record<string, string>;

const folder = mkdtempSync(join(tmpdir(), "refusals-"));

/** It gives up after 20 seconds, in which the other tests run. */
let migratingNowhere: ReturnType<typeof runCommand>;

beforeAll(async () => {
  settings = {
    DATABASE_URL: database.url,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: `refusals-${crypto.randomUUID()}:`,
    MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
    PORT: String(await freePort()),
  };
  migratingNowhere = runCommand(["src/operate/main.ts", "migrate"], {
    DATABASE_URL: `postgres://u:secret@${NOBODY}/name`,
  });
});

afterAll(async () => {
  rmSync(folder, { recursive: true });
});

const STACK = /^\s+at /m;
