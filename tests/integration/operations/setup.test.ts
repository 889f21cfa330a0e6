import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { EXIT_CONFIG } from "../../../src/lib/config.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { PASSWORD, startApi, type TestApi } from "../../support/api.ts";
import { insertSubscription, insertTenant } from "../../support/outbox.ts";
import { runCommand } from "../../support/processes/command.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { lacks } from "../../support/needs.ts";

describe("on an empty database", () => {
  test("creates all missing records and prints the next steps", async () => {
    expect(made).toMatchObject({
      server_root: "https://reviews.example",
      company: { name: "Acme", made: true },
      admin: { email: "ada@acme.example", made: true, has_password: false },
      plans: [
        { name: "Standard", made: true },
        { name: "Small", made: true },
      ],
      review_sites: [
        { slug: "google", name: "Google", made: true, secret: expect.stringMatching(/^\w{64}$/) },
      ],
      next: expect.arrayContaining([expect.stringContaining("bun run api")]),
    });
    expect(await counts()).toEqual({ companies: 1, users: 1, plans: 2, sites: 1, keys: 2 });
  });

  test("writes the master key to the configured file, readable only by its user", () => {
    const path = settings["MASTER_KEY_FILE"] ?? "";
    expect(Buffer.from(readFileSync(path, "utf8"), "base64")).toHaveLength(32);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("audits created records without an actor", async () => {
    const rows = await database.db.sql<{ action: string }[]>`
      select action from audit_log where actor_id is null order by id`;
    expect(rows.map(({ action }) => action)).toEqual([
      "COMPANY_CREATED",
      "USER_CREATED",
      "USER_INVITED",
      "CLIENT_CREATED",
      "PLAN_CREATED",
      "PLAN_CREATED",
      "PROVIDER_CREATED",
    ]);
  });
});

describe("run again", () => {
  test("changes nothing, shows no secret and keeps the earlier link", async () => {
    const before = await counts();
    const answer = await again(...FIRST.filter((one) => one !== "--json"));
    expect(answer).toMatchObject({
      migrations_applied: 0,
      company: { made: false },
      admin: { made: false },
      plans: [{ made: false }, { made: false }],
      review_sites: [{ made: false }],
    });
    expect(linkOf(answer)).toBeUndefined();
    expect(JSON.stringify(answer)).not.toContain("secret");
    expect(await counts()).toEqual(before);
  });

  test("prints the existing records", async () => {
    const { said } = await setUp([]);
    expect(said).toContain("administrator  ada@acme.example, already exists");
    expect(said).toContain("google (Google), already exists");
    expect(said).toContain("bun run setup --new-link");
  });

  test("makes a new link on request, and only the last link works", async () => {
    const link = linkOf(await again("--new-link")) ?? "";
    expect(link).toStartWith("https://reviews.example/dashboard/welcome#invitation=");
    const accept = (code: string) =>
      api.call("POST", "/auth/invitation", { body: { code, password: PASSWORD } });
    expect((await accept(codeOf(linkOf(made) ?? ""))).status).toBe(400);
    expect((await accept(codeOf(link))).body).toMatchObject({ user: { role: "super_admin" } });
    expect(await api.login("ada@acme.example")).toBeString();
    const later = await again("--new-link");
    expect(later["admin"]).toEqual({ email: "ada@acme.example", made: false, has_password: true });
    const { said } = await setUp(["--new-link"]);
    expect(said).toContain("No link was created because the password is already set.");
    expect((await setUp([])).said).not.toContain("No link was created");
  });

  test.each([
    ["with a secret, readable only by its user", "--review-site=angi=Angi", 0o600],
    ["without a secret, unchanged", "--review-site=angi=Angi", 0o644],
  ])("leaves the file of a redirected output %s", async (_title, site, mode) => {
    const path = join(folder, "setup.json");
    writeFileSync(path, "");
    chmodSync(path, 0o644);
    const child = Bun.spawn([process.execPath, "src/operate/main.ts", "setup", site, "--json"], {
      cwd: join(import.meta.dir, "../../.."),
      env: { PATH: process.env["PATH"] ?? "", ...settings },
      stdout: Bun.file(path),
      stderr: "ignore",
    });
    expect(await child.exited).toBe(0);
    expect(statSync(path).mode & 0o777).toBe(mode);
    expect(readFileSync(path, "utf8")).toContain("angi");
  });

  test("creates another named administrator", async () => {
    const answer = await again("--admin-email=bob@acme.example");
    expect(answer["admin"]).toMatchObject({ email: "bob@acme.example", made: true });
    expect(linkOf(answer)).toContain("invitation=");
  });

  test("four times concurrently creates each record once", async () => {
    const args = ["--admin-email=eve@acme.example", "--plan=Large", "--review-site=yelp=Yelp"];
    const answers = await Promise.all(Array.from({ length: 4 }, () => again(...args)));
    const count = (is: (answer: Record<string, unknown>) => boolean) => answers.filter(is).length;
    expect(count((one) => fieldsOf(one["admin"])["made"] === true)).toBe(1);
    expect(count((one) => JSON.stringify(one["review_sites"]).includes("secret"))).toBe(1);
  });
});

describe("is rejected", () => {
  test.each([
    ["an unknown flag", ["--nonsense"]],
    ["an invalid address", ["--admin-email=nobody"]],
    ["an invalid slug", ["--review-site=Not A Slug=Name"]],
    ["an invalid feature", ["--plan=Name=Not A Feature"]],
    ["a password on the command line", ["--admin-password=secret"]],
  ])("%s, before any change", async (_title, args) => {
    const before = await counts();
    const { status, said } = await setUp(args);
    expect([status, said]).toEqual([EXIT_USAGE, expect.not.stringContaining("    at ")]);
    expect(await counts()).toEqual(before);
  });

  test("the address of a user of another company", async () => {
    const [partner] = await database.db.sql<{ id: number }[]>`
      insert into companies (type, name, primary_color, created_at) values ('partner', 'P', '#000000', now()) returning id`;
    await database.db.sql`
      insert into users (company_id, email, name, role, created_at, updated_at)
      values (${partner?.id ?? 0}, 'taken@p.example', 'T', 'partner_owner', now(), now())`;
    const { status, said } = await setUp(["--admin-email=taken@p.example"]);
    expect([status, said]).toEqual([EXIT_USAGE, expect.stringContaining("another company")]);
  });

  test("without a terminal and a first administrator", async () => {
    const empty = await emptyDatabase();
    const { status, said } = await setUp([], { DATABASE_URL: empty.url });
    await empty.drop();
    expect([status, said]).toEqual([EXIT_USAGE, expect.stringContaining("--admin-email")]);
  });

  test("with a wrong master key, and removes a newly created key file", async () => {
    const file = join(folder, "other.key");
    const { status, said } = await setUp([], { MASTER_KEY_FILE: file });
    expect([status, said]).toEqual([
      EXIT_CONFIG,
      expect.stringMatching(/The master key is wrong.*Set MASTER_KEY \(or MASTER_KEY_FILE\)/),
    ]);
    expect(existsSync(file)).toBe(false);
  });
});

describe("the doctor", () => {
  const doctor = (env: Record<string, string> = {}, ...args: string[]) =>
    runCommand(["src/operate/main.ts", "doctor", ...args], { ...settings, ...env });
  const redis = { REDIS_URL: process.env["TEST_REDIS_URL"] ?? "", SERVER_ROOT: "http://localhost" };

  test("reports no fault for a complete setup", async () => {
    const { status, said } = await doctor(redis);
    expect([status, said]).toEqual([0, expect.not.stringContaining("FAULT")]);
    for (const line of ["PostgreSQL 1", "current", "the master key decrypts", "Redis ", "plans: 3"])
      expect(said).toContain(line);
  });

  test("reports every fault with a remedy and exits with 1", async () => {
    const { status, said } = await doctor({
      SMTP_URL: "smtp://127.0.0.1:9",
      MASTER_KEY_FILE: "",
      MASTER_KEY: Buffer.alloc(32).toString("base64"),
    });
    expect(status).toBe(1);
    expect(said).toMatch(/FAULT {3}master key .*\n +Set MASTER_KEY .* to the key of this database/);
    expect(said).toMatch(/FAULT {3}Redis .*\n +Check REDIS_URL/);
    expect(said).toMatch(/FAULT {3}mail .*\n +Check SMTP_URL/);
  });

  test("names each host that it cannot find", async () => {
    const { said } = await doctor(
      {
        DATABASE_URL: "postgres://u:secret@postgres.invalid/name",
        REDIS_URL: "redis://u:secret@redis.invalid",
        SERVER_ROOT: "https://root.invalid",
        SMTP_URL: "smtp://u:secret@mail.invalid",
      },
      "--https=https://receiver.invalid/",
    );
    for (const [title, host] of [
      ["PostgreSQL", "postgres"],
      ["Redis", "redis"],
      ["name", "root"],
      ["mail", "mail"],
      ["https", "receiver"],
    ])
      expect(said).toMatch(new RegExp(`FAULT {3}${title} .*\\b${host}\\.invalid`));
    expect(said).not.toContain("secret");
  });

  test("finds a database that cannot write, as with a full disk", async () => {
    const full = await emptyDatabase();
    await full.db.sql.unsafe(
      `alter database ${new URL(full.url).pathname.slice(1)} set temp_file_limit = 0`,
    );
    const { status, said } = await doctor({ ...redis, DATABASE_URL: full.url });
    await full.drop();
    expect([status, said]).toEqual([
      1,
      expect.stringMatching(
        /ok {6}PostgreSQL [^]*FAULT {3}writes .*temp_file_limit.*\n +Check PostgreSQL's log/,
      ),
    ]);
  });

  test("mentions the link that the administrator has not used yet", async () => {
    const fresh = await emptyDatabase();
    const env = { ...redis, DATABASE_URL: fresh.url };
    await setUp(FIRST, { ...env, MASTER_KEY_FILE: join(folder, "fresh.key") });
    const { said } = await doctor({ ...env, MASTER_KEY_FILE: join(folder, "fresh.key") });
    await fresh.drop();
    expect(said).toMatch(/administrators who can sign in: 0.*\n +Open the link.*--new-link/);
  });

  test("warns about variables that resemble settings, and about settings that weaken it", async () => {
    const { status, said } = await doctor({ ...redis, RETENTION_DAY: "9", RATE_LIMITS: "off" });
    expect(status).toBe(0);
    expect(said).toMatch(/advice {2}settings .*RETENTION_DAY is no.*\n +Is it RETENTION_DAYS\?/);
    expect(said).toMatch(/advice {2}settings .*RATE_LIMITS/);
  });

  test("reports each bad setting, and a database that is unreachable or not migrated", async () => {
    const bad = await doctor({ PORT: "x", SMTP_URL: "x" });
    expect([bad.status, bad.said]).toEqual([
      1,
      expect.stringMatching(/PORT must[^]*SMTP_URL must/),
    ]);
    const away = await doctor({ ...redis, DATABASE_URL: "postgres://u:secret@127.0.0.1:9/name" });
    expect([away.status, away.said]).toEqual([1, expect.stringContaining("FAULT   PostgreSQL")]);
    expect(away.said).not.toContain("secret");
    const empty = await emptyDatabase();
    const bare = await doctor({ ...redis, DATABASE_URL: empty.url });
    await empty.drop();
    expect([bare.status, bare.said]).toEqual([1, expect.stringContaining("run `bun run migrate`")]);
  });

  test("reports a partner's dead host as advice, and exits with 0", async () => {
    const { db } = database;
    const { partnerId } = await insertTenant(db);
    const box = createSecretBox({ current: storedKey() });
    const url = "https://127.0.0.1:9/hook";
    await insertSubscription({ db, box }, { partnerId, url });
    const { status, said } = await doctor({ ...redis, WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8" });
    expect([status, said]).toEqual([
      0,
      expect.stringMatching(
        /advice {2}https {9}127\.0\.0\.1:9, a partner's receiver: .*ECONNREFUSED.*\n +Inform the partner\./,
      ),
    ]);
  });

  test("finds that PostgreSQL confirms commits before they are on disk", async () => {
    const DATABASE_URL = `${database.url}?synchronous_commit=off`;
    const { status, said } = await doctor({ ...redis, DATABASE_URL });
    expect([status, said]).toEqual([
      1,
      expect.stringMatching(
        /FAULT {3}durability .*is off for \w+: .*\n +Remove synchronous_commit from the address/,
      ),
    ]);
  });

  test("tests a receiver's host with a TLS handshake only", async () => {
    const answer = await doctor(
      { ...redis, WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8" },
      "--https=https://127.0.0.1:9/",
    );
    expect(answer.said).toMatch(/FAULT {3}https .*ECONNREFUSED/);
    const refused = await doctor(redis, "--https=https://10.0.0.1/");
    expect([refused.status, refused.said]).toEqual([
      1,
      expect.stringMatching(/FAULT {3}https {9}10\.0\.0\.1 is a private address/),
    ]);
  });
});

test.skipIf(lacks("bash", "openssl"))(
  "recovery.md changes the master key that setup created",
  async () => {
    const fresh = await emptyDatabase();
    const env = { DATABASE_URL: fresh.url, MASTER_KEY_FILE: join(folder, "first.key") };
    expect(await setUp(FIRST, env)).toMatchObject({ status: 0 });
    const guide = await Bun.file(
      join(import.meta.dir, "../../../docs/operations/recovery.md"),
    ).text();
    const blocks = guide.matchAll(/^ *```sh run \S+setup\.test\.ts\n([^]*?)^ *```$/gm);
    const commands = [...blocks].map(([, block = ""]) => block).join("");
    const print = 'printf "%s\n" "$MASTER_KEY_FILE" "$MASTER_KEY_PREVIOUS_FILE"';
    const shell = Bun.spawnSync(["bash", "-eu", "-c", `${commands}\n${print}`], {
      env: { PATH: process.env["PATH"] ?? "", ...env },
    });
    const [current = "", previous = ""] = shell.stdout.toString().split("\n");
    expect([current, previous]).toEqual([join(folder, "master-new.key"), env.MASTER_KEY_FILE]);
    expect(statSync(current).mode & 0o777).toBe(0o600);
    const both = { ...env, MASTER_KEY_FILE: current, MASTER_KEY_PREVIOUS_FILE: previous };
    const rotated = await runCommand(["src/operate/main.ts", "keys", "rotate-master"], {
      ...settings,
      ...both,
    });
    expect(rotated).toEqual({
      status: 0,
      said: expect.stringContaining("Remove MASTER_KEY_PREVIOUS as soon as"),
    });
    // The page and the command name the same time after which the old key may go.
    const [minutes = "no minutes"] = /\d+ minutes(?= have passed)/.exec(rotated.said) ?? [];
    expect(guide).toContain(`until ${minutes} have passed`);
    const alone = await setUp([], { ...env, MASTER_KEY_FILE: current });
    await fresh.drop();
    expect(alone.status).toBe(0);
  },
);

let settings: Record<string, string>;

const EXIT_USAGE = 64;

const FIRST = [
  "--company=Acme",
  "--admin-email= Ada@Acme.example ",
  "--admin-name=Ada",
  "--plan=Standard=reviews,responses",
  "--plan=Small",
  "--review-site=google=Google",
  "--json",
];

let database: TestDatabase;

let folder: string;

/** The result of the first run. */
let made: Record<string, unknown>;

let api: TestApi;

async function emptyDatabase(): Promise<TestDatabase> {
  const empty = await createDatabase("defaults");
  await empty.db.sql.unsafe(
    "drop schema if exists drizzle, public, shadows cascade; create schema public",
  );
  return empty;
}

const setUp = (args: readonly string[], env: Record<string, string> = {}) =>
  runCommand(["src/operate/main.ts", "setup", ...args], { ...settings, ...env });

async function again(...args: string[]): Promise<Record<string, unknown>> {
  const { status, said } = await setUp([...args, "--json"]);
  expect([status, said]).toEqual([0, expect.stringMatching(/^\{/)]);
  return JSON.parse(said);
}

function linkOf(answer: Record<string, unknown>): string | undefined {
  const { link } = fieldsOf(answer["admin"]);
  return typeof link === "string" ? link : undefined;
}

const codeOf = (link: string) =>
  new URLSearchParams(new URL(link).hash.slice(1)).get("invitation") ?? "";

/** Reads the master key that the first run has written. */
const storedKey = () =>
  Buffer.from(readFileSync(settings["MASTER_KEY_FILE"] ?? "", "utf8"), "base64");

async function counts() {
  const [row] = await database.db.sql`
    select (select count(*)::int from companies) as companies, (select count(*)::int from users) as users,
           (select count(*)::int from plans) as plans, (select count(*)::int from review_sites) as sites,
           (select count(*)::int from signing_keys) as keys`;
  return { ...row };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "setup-"));
  database = await emptyDatabase();
  settings = {
    DATABASE_URL: database.url,
    REDIS_URL: "redis://127.0.0.1:9",
    MASTER_KEY_FILE: join(folder, "master.key"),
    SERVER_ROOT: "https://reviews.example",
  };
  const { status, said } = await setUp(FIRST);
  expect([status, said]).toEqual([0, expect.any(String)]);
  made = JSON.parse(said);
  api = await startApi({ db: database.db, box: createSecretBox({ current: storedKey() }) });
});

afterAll(async () => {
  await api.stop();
  await database.drop();
  rmSync(folder, { recursive: true });
});
