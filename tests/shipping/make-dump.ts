// `bun tests/shipping/make-dump.ts`: fills an empty database of the oldest supported PostgreSQL through the product, and
// writes it as `releases/<version>.sql.gz` for releases.test.ts. It needs `pg_dump`.
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { ROOT } from "../../db/executable.ts";
import { startStores } from "../../scripts/demo/stores/keep.ts";
import { installPostgres } from "../../scripts/demo/stores/postgres-versions.ts";
import { VERSION } from "../../src/lib/version.ts";
import { created } from "../support/factory.ts";
import { Receiver, until } from "../support/network/receiver.ts";
import { ApiProcess } from "../support/processes/api-process.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { type DumpHeader, seedWith, signIn } from "./demo.ts";

/** A dump of this version can be restored on every later one. */
const OLDEST_POSTGRES = 15;
const DELIVERED = 40;
const HELD = 25;
/** A request whose number is a multiple of this one fails. */
const FAILS_EACH = 8;

async function makeDump(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-dump-"));
  const stores = await startStores({
    folder: mkdtempSync(join(tmpdir(), "reviewrelay-dump-stores-")),
    temporary: true,
    logFile: join(folder, "stores.log"),
    postgres: { durable: false, native: installPostgres(OLDEST_POSTGRES) },
    redis: true,
  });
  const databaseUrl = stores.databaseUrl ?? "";
  const masterKey = randomBytes(32).toString("base64");
  const env = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: stores.redisUrl ?? "",
    MASTER_KEY: masterKey,
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
    RETRY_DELAYS_MS: "300,600,900",
  };
  const [partner] = await seedWith(env);
  if (partner === undefined) throw new Error("The demo has no partner.");
  const receiver = await Receiver.start((_, count) => ((count + 1) % FAILS_EACH === 0 ? 500 : 200));
  const api = await ApiProcess.start(env);
  const dispatcher = new DispatcherProcess(env);
  dispatcher.start();
  try {
    const call = await signIn(api, partner);
    const at = { webhook_url: receiver.url };
    const immediate = { ...at, label: "Orders", delivery_kind: "immediate" };
    const { id } = await call("POST", "/partner/webhooks", immediate);
    const batch = { ...at, label: "Nightly", delivery_kind: "batch", batch_interval_hours: 24 };
    await call("POST", "/partner/webhooks", batch);
    const webhook = `/partner/webhooks/${String(id)}`;
    const report = async (kind: string, count: number) => {
      const events = Array.from({ length: count }, (_, n) =>
        created(partner.siteId, `${kind} ${n}`),
      );
      const { status } = await api.report(partner.provider, events);
      if (status !== 200) throw new Error(`The events were answered ${status}.`);
    };
    await report("delivered", DELIVERED);
    await until("the deliveries", async () => {
      const { pending } = await call("GET", `${webhook}/health`);
      return pending === 0 && new Set(receiver.eventIds).size === DELIVERED;
    });
    await call("POST", `${webhook}/disable`);
    await report("held", HELD);
    const { data } = await call("GET", `${webhook}/messages?limit=${HELD}`);
    const held = (data as { event_id: string }[]).map(({ event_id }) => event_id).toReversed();
    await dispatcher.stop();
    const attempts = receiver.received.length;
    writeDump(databaseUrl, { ...partner, masterKey, held, attempts });
  } finally {
    api.kill();
    await dispatcher.stop();
    await receiver.stop();
    await stores.stop();
    rmSync(folder, { recursive: true });
  }
}

function writeDump(databaseUrl: string, header: DumpHeader): void {
  const options = ["--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=100"];
  const { success, stdout } = Bun.spawnSync(["pg_dump", ...options, databaseUrl], {
    stderr: "inherit",
  });
  if (!success) throw new Error("pg_dump failed.");
  const file = join(ROOT, "tests/shipping/releases", `${VERSION}.sql.gz`);
  // The lines that begin with a backslash are commands of psql, which the test does not need.
  const sql = stdout.toString().replaceAll(/^\\.*\n/gm, "");
  writeFileSync(file, gzipSync(`-- ${JSON.stringify(header)}\n${sql}`));
  console.log(`${file}: ${Bun.file(file).size} bytes`);
}

if (import.meta.main) await makeDump();
