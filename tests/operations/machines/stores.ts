// The stores as docs/operations/recovery.md recommends them: PostgreSQL under Patroni with etcd, and Redis with Sentinels.
import { randomBytes } from "node:crypto";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { askRedis, isSentinelSettled } from "../../../scripts/demo/stores/redis-servers.ts";
import { ROOT } from "../../../scripts/install/install.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import { until } from "../../support/network/receiver.ts";
import { addressOf, type Machine, machinesOf, type Network, NOBODY } from "./network.ts";

const POSTGRES = machinesOf("postgres");
const REDIS = machinesOf("redis");
/** Each has an etcd and a Sentinel. */
const WITNESSES = machinesOf("witness");
const ETCD = "ReviewRelay machines";
const PATRONI_PORT = 8008;
const SENTINEL_PORT = 26_379;
const ASK_MS = 2_000;
const READY_MS = 120_000;

export interface Stores {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** Starts the programs of a machine again after it was killed. */
  start(machine: Machine): void;
  primary(): Promise<Machine>;
  standby(): Promise<Machine>;
  master(): Promise<Machine>;
  replica(): Promise<Machine>;
  etcdLeader(): Promise<Machine>;
  /** Whether each machine could be lost now: a synchronous standby, a replica, and all witnesses. */
  isRedundant(): Promise<boolean>;
}

/** Returns the folder with the programs of PostgreSQL; undefined without the ones that Patroni needs. */
export function postgresPrograms(): string | undefined {
  const root = "/usr/lib/postgresql";
  const folders = existsSync(root) ? readdirSync(root).map((one) => join(root, one, "bin")) : [];
  const needed = ["postgres", "initdb", "pg_basebackup", "pg_rewind", "pg_controldata", "pg_ctl"];
  return folders.findLast((one) => needed.every((name) => existsSync(join(one, name))));
}

/** Starts all stores and waits until each machine could be lost. */
export async function startStores(network: Network, programs: string): Promise<Stores> {
  const password = randomBytes(16).toString("hex");
  writePatroni(network.folder, { password, programs });
  writeRedis(network.folder);
  const stores: Stores = {
    databaseUrl: `postgres://postgres:${password}@${POSTGRES.map(addressOf).join(",")}/postgres`,
    redisUrl: `redis+sentinel://${WITNESSES.map((one) => `${addressOf(one)}:${SENTINEL_PORT}`).join(",")}/main`,
    start: (machine) => startPrograms(network, machine),
    primary: () => find("a primary", POSTGRES, (one) => isPatroni(one, "primary")),
    standby: () => find("a synchronous standby", POSTGRES, (one) => isPatroni(one, "synchronous")),
    master: () => find("a master of Redis", REDIS, (one) => hasRedisRole(one, "master")),
    replica: () => find("a replica of Redis", REDIS, (one) => hasRedisRole(one, "slave")),
    etcdLeader: () => find("a leader of etcd", WITNESSES, leadsEtcd),
    async isRedundant() {
      const all = await Promise.all([
        ...POSTGRES.map((one) =>
          Promise.all([isPatroni(one, "primary"), isPatroni(one, "synchronous")]).then((is) =>
            is.includes(true),
          ),
        ),
        ...WITNESSES.map((one) => isHealthyEtcd(one)),
        ...WITNESSES.map((one) =>
          isSentinelSettled({
            ask: (...command) =>
              askRedis({ host: addressOf(one), port: SENTINEL_PORT }, ...command),
          }),
        ),
      ]);
      return all.every(Boolean);
    },
  };
  for (const machine of [...WITNESSES, ...REDIS, ...POSTGRES]) stores.start(machine);
  await until("redundant stores", () => stores.isRedundant(), READY_MS);
  return stores;
}

function startPrograms(network: Network, machine: Machine): void {
  const conf = join(network.folder, machine);
  if (POSTGRES.includes(machine))
    network.start(machine, ["patroni", join(conf, "patroni.json")], { isUnprivileged: true });
  if (REDIS.includes(machine)) network.start(machine, ["redis-server", join(conf, "redis.conf")]);
  if (!WITNESSES.includes(machine)) return;
  network.start(machine, ["redis-server", join(conf, "sentinel.conf"), "--sentinel"]);
  const [client, peer] = [etcdUrl(machine), etcdUrl(machine, 2380)];
  network.start(machine, [
    "etcd",
    `--name=${machine}`,
    `--data-dir=${join(conf, "etcd")}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=${WITNESSES.map((one) => `${one}=${etcdUrl(one, 2380)}`).join(",")}`,
    `--initial-cluster-token=${ETCD}`,
    "--logger=zap",
  ]);
}

function etcdUrl(machine: Machine, port = 2379): string {
  return `http://${addressOf(machine)}:${port}`;
}

/** Writes the configuration of Patroni, which reads YAML and therefore JSON. */
function writePatroni(
  folder: string,
  { password, programs }: { readonly password: string; readonly programs: string },
): void {
  for (const machine of POSTGRES) {
    const home = join(folder, machine);
    mkdirSync(home, { mode: 0o700 });
    const address = addressOf(machine);
    const config = {
      scope: "reviewrelay",
      name: machine,
      restapi: {
        listen: `${address}:${PATRONI_PORT}`,
        connect_address: `${address}:${PATRONI_PORT}`,
      },
      etcd3: { hosts: WITNESSES.map((one) => `${addressOf(one)}:2379`) },
      bootstrap: {
        dcs: clusterSettings(),
        initdb: [
          { encoding: "UTF8" },
          { locale: "C" },
          { "lc-ctype": "C.UTF-8" },
          "data-checksums",
        ],
      },
      postgresql: {
        listen: `${address}:5432`,
        connect_address: `${address}:5432`,
        data_dir: join(home, "data"),
        bin_dir: programs,
        pgpass: join(home, "pgpass"),
        parameters: { unix_socket_directories: home },
        authentication: {
          superuser: { username: "postgres", password },
          replication: { username: "replication", password },
        },
        pg_hba: [
          "local all all scram-sha-256",
          "host all all samenet scram-sha-256",
          "host replication replication samenet scram-sha-256",
        ],
      },
    };
    const file = join(home, "patroni.json");
    writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
    for (const path of [home, file]) chownSync(path, NOBODY, NOBODY);
  }
}

/**
 * Reads the settings of Patroni for the whole cluster from docs/operations/recovery.md, and adds the times of commits, which
 * the rules of tests/verdicts need.
 */
function clusterSettings(): unknown {
  const page = readFileSync(join(ROOT, "docs/operations/recovery.md"), "utf8");
  const [, block = ""] = /^```yaml .*machines.*\n([^`]+)/m.exec(page) ?? [];
  const settings = fieldsOf(Bun.YAML.parse(block));
  const postgresql = fieldsOf(settings["postgresql"]);
  const parameters = { ...fieldsOf(postgresql["parameters"]), track_commit_timestamp: "on" };
  return { ...settings, postgresql: { ...postgresql, parameters } };
}

function writeRedis(folder: string): void {
  const [first = "redis-1"] = REDIS;
  const write = (machine: Machine, name: string, lines: readonly string[]) => {
    const home = join(folder, machine);
    mkdirSync(home, { recursive: true });
    const all = [`bind ${addressOf(machine)}`, "protected-mode no", `dir ${home}`, ...lines];
    writeFileSync(join(home, name), `${all.join("\n")}\n`);
  };
  for (const machine of REDIS)
    write(machine, "redis.conf", [
      'save ""',
      "repl-timeout 10",
      "repl-diskless-sync-delay 0",
      ...(machine === first ? [] : [`replicaof ${addressOf(first)} 6379`]),
    ]);
  for (const machine of WITNESSES)
    write(machine, "sentinel.conf", [
      `port ${SENTINEL_PORT}`,
      `sentinel monitor main ${addressOf(first)} 6379 2`,
      "sentinel down-after-milliseconds main 3000",
      "sentinel failover-timeout main 10000",
    ]);
}

async function find(
  what: string,
  among: readonly Machine[],
  fits: (machine: Machine) => Promise<boolean>,
): Promise<Machine> {
  for (const one of among) if (await fits(one)) return one;
  throw new Error(`There is not ${what}.`);
}

/** Asks Patroni as the health check of a proxy does: it answers 200 if the server has the role. */
async function isPatroni(machine: Machine, role: string): Promise<boolean> {
  return (await ask(`http://${addressOf(machine)}:${PATRONI_PORT}/${role}`))?.status === 200;
}

async function hasRedisRole(machine: Machine, role: string): Promise<boolean> {
  const [is] = Object.values(
    fieldsOf(await askRedis({ host: addressOf(machine), port: 6379 }, "ROLE")),
  );
  return is === role;
}

async function isHealthyEtcd(machine: Machine): Promise<boolean> {
  return (await ask(`${etcdUrl(machine)}/health`))?.body["health"] === "true";
}

async function leadsEtcd(machine: Machine): Promise<boolean> {
  const body = (await ask(`${etcdUrl(machine)}/v3/maintenance/status`, "POST"))?.body;
  return body?.["leader"] !== undefined && body["leader"] === fieldsOf(body["header"])["member_id"];
}

/** Sends an HTTP request; returns undefined while nobody answers. */
export async function ask(url: string, method = "GET") {
  try {
    const init = {
      method,
      signal: AbortSignal.timeout(ASK_MS),
      ...(method === "POST" && { body: "{}" }),
    };
    const response = await fetch(url, init);
    const body: unknown = await response.json().catch(() => undefined);
    return { status: response.status, body: fieldsOf(body) };
  } catch {
    return undefined;
  }
}
