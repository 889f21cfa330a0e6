// `bun tests/operations/releases/make-dump.ts`: fills an empty database of the oldest supported PostgreSQL through the
// product, and writes it as `<version>.sql.gz` into this folder, for ../releases.test.ts. It needs `pg_dump`.
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { ROOT } from "../../../db/executable.ts";
import type { Demo } from "../../../scripts/demo/seed/seed-demo.ts";
import { startStores } from "../../../scripts/demo/stores/keep.ts";
import { installPostgres } from "../../../scripts/demo/stores/postgres-versions.ts";
import { VERSION } from "../../../src/lib/version.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { created } from "../../support/factory.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { ApiProcess } from "../../support/processes/api-process.ts";
import { runCommand } from "../../support/processes/command.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";

/** The first line of a dump has these values as JSON, after `-- `. All of them belong to the demo. */
export interface DumpHeader {
  readonly masterKey: string;
  readonly email: string;
  readonly password: string;
  readonly provider: { readonly slug: string; readonly secret: string };
  readonly siteId: number;
  /** The ids of the events that are held by a subscription, in order. */
  readonly held: readonly string[];
  /** The number of attempts that the deliveries before them took. */
  readonly attempts: number;
}

/** A dump of this version can be restored on every later one. */
const OLDEST_POSTGRES = 15;
const DELIVERED = 40;
const HELD = 25;
/** A request whose number is a multiple of this one fails. */
const FAILS_EACH = 8;

async function makeDump(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), "dump-"));
  const stores = await startStores({
    folder: mkdtempSync(join(tmpdir(), "dump-stores-")),
    temporary: true,
    logFile: join(dataDir, "stores.log"),
    postgres: { durable: false, native: installPostgres(OLDEST_POSTGRES) },
    redis: true,
  });
  const databaseUrl = stores.databaseUrl ?? "";
  const masterKey = randomBytes(32).toString("base64");
  const env = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: stores.redisUrl ?? "",
    MASTER_KEY: masterKey,
    SERVER_ROOT: "http://127.0.0.1:3000",
    DATA_DIR: dataDir,
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
    RETRY_DELAYS_MS: "300,600,900",
  };
  for (const name of ["migrate", "seed"]) {
    const { status, said } = await runCommand([`scripts/${name}.ts`], env);
    if (status !== 0) throw new Error(said);
  }
  const demo: Demo = JSON.parse(readFileSync(join(dataDir, "demo.json"), "utf8"));
  const owner = demo.users.find(({ role }) => role === "partner_owner");
  const site = demo.store_review_sites.find(({ partner_id }) => partner_id === owner?.partner_id);
  const provider = demo.providers.find(({ slug }) => slug === site?.provider);
  if (!owner || !site || !provider) throw new Error("The demo has no partner with a store.");

  const receiver = await Receiver.start((_, count) => ((count + 1) % FAILS_EACH === 0 ? 500 : 200));
  const api = await ApiProcess.start(env);
  const dispatcher = new DispatcherProcess(env);
  dispatcher.start();
  try {
    const { token } = (await api.login(owner.email, owner.password)).body;
    const call = async (method: string, path: string, body?: object) => {
      const answer = await api.call(method, api.root + BASE_PATH + path, {
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${String(token)}` },
        ...(body && { body: JSON.stringify(body) }),
      });
      if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
      return answer.body;
    };
    const subscription = await call("POST", "/partner/webhooks", {
      label: "Orders",
      delivery_kind: "immediate",
      webhook_url: receiver.url,
    });
    await call("POST", "/partner/webhooks", {
      label: "Nightly",
      delivery_kind: "batch",
      batch_interval_hours: 24,
      webhook_url: receiver.url,
    });
    const report = async (kind: string, count: number) => {
      const names = Array.from({ length: count }, (_, n) => `${kind} ${n}`);
      const { status } = await api.report(
        { ...provider, id: 0, name: "" },
        names.map((name) => created(site.id, name)),
      );
      if (status !== 200) throw new Error(`The events were answered ${status}.`);
    };
    const webhook = `/partner/webhooks/${String(subscription["id"])}`;
    const succeeded = () => new Set(receiver.eventIds).size;
    await report("delivered", DELIVERED);
    await until("the deliveries", () => succeeded() === DELIVERED);
    await until(
      "an empty queue",
      async () => (await call("GET", `${webhook}/health`))["pending"] === 0,
    );
    await call("POST", `${webhook}/disable`);
    await report("held", HELD);
    const { data } = await call("GET", `${webhook}/messages?limit=${HELD}`);
    const held = (data as { event_id: string }[]).map(({ event_id }) => event_id).toReversed();
    await dispatcher.stop();
    const header: DumpHeader = {
      masterKey,
      email: owner.email,
      password: owner.password,
      provider,
      siteId: site.id,
      held,
      attempts: receiver.received.length,
    };
    const dump = Bun.spawnSync(
      [
        "pg_dump",
        "--no-owner",
        "--no-privileges",
        "--inserts",
        "--rows-per-insert=100",
        databaseUrl,
      ],
      { stderr: "inherit" },
    );
    if (!dump.success) throw new Error("pg_dump failed.");
    const file = join(ROOT, "tests/operations/releases", `${VERSION}.sql.gz`);
    // The lines that begin with a backslash are commands of psql, which the test does not need.
    const sql = dump.stdout.toString().replaceAll(/^\\.*\n/gm, "");
    writeFileSync(file, gzipSync(`-- ${JSON.stringify(header)}\n${sql}`));
    console.log(`${file}: ${Bun.file(file).size} bytes`);
  } finally {
    api.kill();
    await dispatcher.stop();
    await receiver.stop();
    await stores.stop();
    rmSync(dataDir, { recursive: true });
  }
}

if (import.meta.main) await makeDump();
