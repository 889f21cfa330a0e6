// The product on its machines: three APIs behind Caddy with deploy/Caddyfile, two dispatchers, and their partners.
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { RawDb } from "../../../db/client.ts";
import { migrate } from "../../../db/migrate.ts";
import { insertPlan } from "../../../scripts/demo/seed/rows.ts";
import { ROOT } from "../../../scripts/install/install.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { addProvider } from "../../support/factory.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { ApiProcess } from "../../support/processes/api-process.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { addPartner } from "../../support/tenants.ts";
import { addEndpoint, type Endpoint, settingsOf } from "../../shipping/drill.ts";
import { addressOf, type Machine, machinesOf, type Network, on, subnet } from "./network.ts";
import { ask, type Stores } from "./stores.ts";

const APIS = machinesOf("api");
const DISPATCHERS = machinesOf("dispatcher");
const PROXY: Machine = "proxy";
const PORT = 3000;
/** Enough for both dispatchers to hold shards of some. */
const PARTNERS = 6;

/** An event is tried for longer than a cut lasts, and at least every ten seconds. */
export const RETRY_DELAYS_MS = [5_000, 10_000, 10_000];

export interface Fleet {
  readonly masterKey: Uint8Array;
  readonly endpoints: readonly Endpoint[];
  /** The address of the proxy. */
  readonly root: string;
  /** One of the APIs, to make requests with. */
  readonly api: ApiProcess;
  /** Starts the program of a machine again after it was killed. */
  start(machine: Machine): void;
  /** Whether all APIs answer that they are ready. */
  isReady(): Promise<boolean>;
  /** Returns what the processes logged. */
  logs(): string;
}

/** Migrates the database, adds the partners, and starts all processes. */
export async function startFleet(
  network: Network,
  stores: Stores,
  openDb: () => RawDb,
): Promise<Fleet> {
  await migrate(stores.databaseUrl);
  const masterKey = randomBytes(32);
  const db = openDb();
  const endpoints = await addPartners(db, masterKey).finally(() => db.close());
  const root = `http://${addressOf(PROXY)}`;
  const settings = {
    ...settingsOf({ masterKey }, stores),
    SERVER_ROOT: root,
    TRUSTED_PROXIES: `${addressOf(PROXY)}/32`,
    WEBHOOK_ALLOWED_NETWORKS: subnet,
    RETRY_DELAYS_MS: RETRY_DELAYS_MS.join(","),
    RATE_LIMITS: "on",
  };
  const apis = new Map<Machine, Promise<ApiProcess>>();
  const dispatchers: DispatcherProcess[] = [];
  const config = join(network.folder, "Caddyfile");
  const shipped = readFileSync(join(ROOT, "deploy/Caddyfile"), "utf8");
  writeFileSync(config, shipped.replace(/^\{$/m, "{\n\tadmin off"));
  const start = (machine: Machine) => {
    if (APIS.includes(machine)) {
      const options = { prefix: on(machine), host: addressOf(machine), port: PORT };
      const api = ApiProcess.start(settings, options);
      // A process that does not get ready is found by `isReady`.
      api.catch(() => undefined);
      apis.set(machine, api);
    }
    if (DISPATCHERS.includes(machine)) {
      const dispatcher = new DispatcherProcess(settings, { prefix: on(machine) });
      dispatchers.push(dispatcher);
      dispatcher.start();
    }
    if (machine !== PROXY) return;
    const api = APIS.map((one) => `${addressOf(one)}:${PORT}`).join(" ");
    const command = ["caddy", "run", "--adapter", "caddyfile", "--config", config];
    network.start(machine, command, { env: { SITE: root, API: api } });
  };
  for (const machine of [...APIS, ...DISPATCHERS, PROXY]) start(machine);
  const [api] = await Promise.all(apis.values());
  if (api === undefined) throw new Error("There is no API.");
  await until("the proxy", async () => (await ask(`${root}/healthz`))?.status === 200);
  return {
    masterKey,
    endpoints,
    root,
    api,
    start,
    async isReady() {
      const urls = APIS.map((one) => `http://${addressOf(one)}:${PORT}/readyz`);
      const answers = await Promise.all(urls.map((url) => ask(url)));
      return answers.every((answer) => answer?.status === 200);
    },
    logs: () => dispatchers.map(({ log }) => log).join("\n"),
  };
}

async function addPartners(db: RawDb, masterKey: Buffer): Promise<Endpoint[]> {
  const box = createSecretBox({ current: masterKey });
  const provider = await addProvider(db, box);
  const plan = await insertPlan(db, { name: "Growth", features: ["reviews"] });
  return Promise.all(
    Array.from({ length: PARTNERS }, async (_, n) => {
      const partner = await addPartner(db, `p${n}`, plan);
      const receiver = await Receiver.start(() => 200, addressOf("outside"));
      return addEndpoint({ db, box }, { partner, receiver, provider });
    }),
  );
}
