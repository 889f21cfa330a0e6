// Runs each command that deploy/ renders: with the arguments, settings and secret files of its container, in an empty root
// that has the executable, as the user of the image, at the ports of the files. The stores are those of compose.yaml.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import {
  chownSync,
  chmodSync,
  closeSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  type RunningStore,
  startEmbeddedPostgres,
} from "../../scripts/demo/stores/embedded-postgres.ts";
import { ROOT } from "../../scripts/install/install.ts";
import { deliver, SETUP } from "../../scripts/executables/use.ts";
import { lacks } from "../support/needs.ts";
import { builtExecutable } from "../support/processes/built-executable.ts";
import { type Given, Pods } from "../support/processes/pods.ts";
import {
  type Container,
  containersOf,
  DEPLOY,
  documentsOf,
  EVERY_OPTION,
  helm,
  IMAGE,
  read,
  servicesOf,
  yamlOf,
} from "../support/rendered.ts";

const hasNoPods = lacks("root", "namespaces", "mounts", "bash", "openssl", "redis-server");

test.skipIf(hasNoPods)(
  "compose.yaml leads from the secrets of the guide to a signed delivery",
  async () => {
    await createStore(compose["services"].postgres.environment);
    const services = servicesOf(read("compose.yaml"), variables);
    const given = { secrets: composeSecrets(), env: TRY };
    const one = (name: string) => theOne(services, name);
    expect(await pods.run(one("migrate"), given)).toMatchObject({ status: 0 });
    const setup = await pods.run(one("setup"), given, [...IMAGE.entrypoint, ...SETUP]);
    expect(setup).toMatchObject({ status: 0 });
    await Promise.all(["api", "dispatcher"].map((name) => pods.start(one(name), given)));
    for (const name of ["api", "dispatcher"])
      expect(await pods.run(one(name), given, IMAGE.health)).toMatchObject({ status: 0 });
    await deliverTo(pods, setup.out);
  },
  120_000,
);

test.skipIf(hasNoPods || lacks("helm"))(
  "the objects of the chart with its defaults lead from secrets.example.yaml to a signed delivery",
  async () => {
    await createStore(compose["services"].postgres.environment);
    const containers = containersOf(documentsOf(helm("--no-hooks")));
    const given = { secrets: clusterSecrets({ database_url: databasePassword }), env: TRY };
    for (const one of containers.filter(({ isInit }) => isInit))
      expect([one.pod, await pods.run(one, given)]).toMatchObject([one.pod, { status: 0 }]);
    await serve(containers, given);
  },
  120_000,
);

test.skipIf(hasNoPods || lacks("helm"))(
  "the chart with every option and two database users gives the owner's address to no pod of the API, is installed and upgraded",
  async () => {
    const containers = containersOf(documentsOf(helm(...EVERY_OPTION)));
    const [create = "", grants = ""] = documented();
    await administer(...create.split(";\n"));
    const [service, owner] = passwordsIn(create);
    const given = {
      secrets: clusterSecrets({ database_url: service }, { database_url: owner }),
      env: TRY,
    };
    const inits = containers.filter(({ isInit }) => isInit);
    const migrate = (pod: string) => pods.run(theOne(inits, pod), given);
    expect(await migrate("api")).toMatchObject({
      status: 78,
      err: expect.stringContaining("MAINTENANCE_DATABASE_URL"),
    });
    expect(await migrate("dispatcher")).toMatchObject({ status: 0 });
    await asOwner(given, grants);
    expect(await migrate("api")).toMatchObject({ status: 0 });
    await serve(containers, given);

    // An upgrade runs all init containers and the Job again.
    for (const pod of ["dispatcher", "api"])
      expect(await migrate(pod)).toMatchObject({ status: 0 });
    expect(await pods.run(theOne(containers, "setup"), given)).toMatchObject({ status: 0 });
  },
  120_000,
);

/** A receiver on this machine, which the guide allows in the same way. */
let TRY: Readonly<Record<string, string>>;
const GUIDE = readFileSync(join(ROOT, "docs/operations/production.md"), "utf8");
const KUBERNETES = readFileSync(join(ROOT, "docs/operations/kubernetes.md"), "utf8");
const compose = yamlOf(read("compose.yaml"));

const folder = mkdtempSync(join(tmpdir(), "deploy-"));
let pods: Pods;
let postgres: RunningStore;
let databasePassword: string;
/** The variables that the guide exports for compose.yaml. */
let variables: Readonly<Record<string, string>>;

beforeAll(async () => {
  if (hasNoPods) return;
  pods = new Pods(await builtExecutable());
  TRY = { WEBHOOK_ALLOW_HTTP: "1", WEBHOOK_ALLOWED_NETWORKS: `${pods.gateway}/32` };
  variables = makeSecrets();
  databasePassword = readFileSync(composeSecrets()["database_password"] ?? "", "utf8").trim();
  postgres = await startPostgres();
}, 300_000);

beforeEach(startRedis);

afterEach(() => pods?.stop());

afterAll(async () => {
  await pods?.remove();
  await postgres?.stop();
  rmSync(folder, { recursive: true });
});

/** Runs the lines of the guide that make the secrets of compose.yaml, and returns the variables that they export. */
function makeSecrets(): Readonly<Record<string, string>> {
  cpSync(DEPLOY, join(folder, "deploy"), { recursive: true });
  const [, lines = ""] = /^```sh run \S+deploy-run\.test\.ts\n(.*?)^```/ms.exec(GUIDE) ?? [];
  const script = `sudo() { "$@"; }\n${lines}\nexec env -0`;
  const { exitCode, stdout, stderr } = Bun.spawnSync(["bash", "--norc", "-euc", script], {
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "" },
  });
  if (exitCode !== 0) throw new Error(stderr.toString());
  return Object.fromEntries(
    stdout
      .toString()
      .split("\0")
      .map((line) => [line.split("=", 1)[0], line.slice(line.indexOf("=") + 1)]),
  );
}

/** Returns the file of each secret of compose.yaml. */
function composeSecrets(): Record<string, string> {
  const secrets = Object.entries<{ file: string }>(compose["secrets"]);
  return Object.fromEntries(
    secrets.map(([name, { file }]) => [name, join(folder, "deploy", file)]),
  );
}

/**
 * Fills in the Secrets of secrets.example.yaml, in its order, and returns the folder of each as a pod has it: its group may
 * read it. The values without a given one are those of compose.yaml.
 */
function clusterSecrets(...passwords: readonly Readonly<Record<string, string>>[]) {
  const redis = readFileSync(composeSecrets()["redis_url"] ?? "", "utf8");
  const [, redisPassword = ""] = /:(\w+)@/.exec(redis) ?? [];
  const values = { redis_url: redisPassword, smtp_url: "password" };
  const key = randomBytes(32).toString("base64");
  return Object.fromEntries(
    documentsOf(read("helm/secrets.example.yaml")).map(({ metadata, stringData }, at) => {
      const target = mkdtempSync(join(folder, "secret-"));
      chmodSync(target, 0o755);
      for (const [name, text] of Object.entries<string>(stringData)) {
        const value = { ...values, ...passwords[at] }[name] ?? "";
        const file = join(target, name);
        writeFileSync(file, text.replace("PASSWORD", value).replace(/^KEY$/, key), { mode: 0o440 });
        chownSync(file, 0, Number(IMAGE.user.split(":")[1]));
      }
      return [metadata.name, target];
    }),
  );
}

/** Runs the other containers of the Deployments, and the commands of the guide, from the setup to a delivery. */
async function serve(containers: readonly Container[], given: Given): Promise<void> {
  const apps = containers.filter(({ isInit, pod }) => !isInit && pod !== "setup");
  await Promise.all(apps.map((one) => pods.start(one, given)));
  const commands = KUBERNETES.matchAll(/ exec (?:-it )?deployment\/(\S+) -c (\S+) -- (.*)$/gm);
  const [setup, doctor] = [...commands].map(([, pod = "", name, command = ""]) => {
    const one = theOne(apps, pod);
    expect(one.name).toBe(name ?? "");
    return (...args: string[]) => pods.run(one, given, [...command.split(" "), ...args]);
  });
  const made = await setup?.(...SETUP.slice(1));
  const checked = await doctor?.();
  expect(checked?.out).toMatch(/^ok +rights /m);
  // This network has no names but those of the stores.
  expect(checked?.out).not.toMatch(/^FAULT +(?!name|mail| )/m);
  await deliverTo(pods, made?.out ?? "");
}

function theOne(containers: readonly Container[], pod: string): Container {
  const [one, ...more] = containers.filter((it) => it.pod === pod);
  if (one === undefined || more.length > 0) throw new Error(`There is not one ${pod}.`);
  return one;
}

const deliverTo = (to: Pods, setup: string) =>
  deliver(`http://${to.addressOf("api")}:${IMAGE.env["PORT"]}`, JSON.parse(setup), to.gateway);

async function startPostgres(): Promise<RunningStore> {
  const home = join(folder, "postgres");
  mkdirSync(home);
  chmodSync(folder, 0o711);
  const hba = join(folder, "pg_hba.conf");
  writeFileSync(hba, "host all all samenet scram-sha-256\n");
  const log = openSync(join(folder, "postgres.log"), "a");
  try {
    return await startEmbeddedPostgres({
      folder: home,
      port: 5432,
      durable: false,
      settings: [`listen_addresses=${pods.gateway}`, `hba_file=${hba}`],
      log,
    });
  } finally {
    closeSync(log);
  }
}

async function administer(...statements: readonly string[]): Promise<void> {
  await withSql(postgres.url.replace("127.0.0.1", pods.gateway), async (sql) => {
    await sql.unsafe("drop database if exists reviewrelay with (force)");
    for (const role of ["reviewrelay", "reviewrelay_owner"])
      await sql.unsafe(`drop role if exists ${role}`);
    for (const one of statements) await sql.unsafe(one);
  });
}

async function withSql(url: string, work: (sql: Bun.SQL) => Promise<void>): Promise<void> {
  const sql = new Bun.SQL(url, { max: 1 });
  try {
    await work(sql);
  } finally {
    await sql.close();
  }
}

/** Does for the database what the image of PostgreSQL does with its settings. */
const createStore = ({
  POSTGRES_USER: role,
  POSTGRES_DB: name,
}: Readonly<Record<string, string>>) =>
  administer(
    `create role ${role} login superuser password '${databasePassword}'`,
    `create database ${name} owner ${role}`,
  );

/** Starts the command of compose.yaml, as the user that owns its secret. */
function startRedis(): void {
  const { command } = compose["services"].redis;
  const [path] = command.filter((one: string) => one.startsWith("/run/secrets/"));
  const conf = composeSecrets()["redis_conf"] ?? "";
  const script = `mount -t tmpfs tmpfs /run && mkdir -p /run/secrets && cp -a ${conf} ${path} && cd /tmp && exec setpriv --reuid 999 --clear-groups "$@"`;
  pods.spawn("redis", ["unshare", "--mount", "sh", "-c", script, "sh", ...command]);
}

/** Reads the statements of the guide for two database users. */
const documented = () =>
  [...GUIDE.matchAll(/^```sql run \S+roles\.test\.ts\n(.*?)^```/gms)].map(([, text = ""]) => text);

function passwordsIn(create: string): readonly [string, string] {
  const of = (role: string) => new RegExp(`role ${role} .*password '(.*)'`).exec(create)?.[1] ?? "";
  return [of("reviewrelay"), of("reviewrelay_owner")];
}

async function asOwner({ secrets }: Given, statements: string): Promise<void> {
  const url = readFileSync(join(secrets["reviewrelay-owner"] ?? "", "database_url"), "utf8");
  await withSql(url.replace("@postgres:", `@${pods.gateway}:`), async (sql) => {
    await sql.unsafe(statements);
  });
}
