// The whole product in one process (an API that listens, a dispatcher, a provider), for tests that use it from outside.

import { freePort } from "../../scripts/demo/stores/keep.ts";
import { makeCommandClient } from "../../src/operate/setup/apply.ts";
import type { Config } from "../../src/lib/config.ts";
import { startApi, testConfig, type TestApi } from "./api.ts";
import { createTestSchedule, startDispatcher } from "./dispatch.ts";
import { addProvider, connectStore, created, report, type TestProvider } from "./factory.ts";
import { createDatabase, type TestDatabase } from "./postgres.ts";
import { addTenants, type Tenants } from "./tenants.ts";

export interface Product {
  readonly root: string;
  readonly port: number;
  readonly database: TestDatabase;
  readonly tenants: Tenants;
  readonly provider: TestProvider;
  /** The id of a store review site of the first partner, to which the provider reports. */
  readonly siteId: number;
  readonly api: () => TestApi;
  /** Reports `count` new reviews of the first partner. */
  emit(count: number): Promise<void>;
  /** Stops the API. `startApi` starts a new one at the same address, as a deployment does. */
  stopApi(): Promise<void>;
  startApi(): Promise<void>;
  stop(): Promise<void>;
}

export async function startProduct(settings: Partial<Config> = {}): Promise<Product> {
  const database = await createDatabase();
  const { db } = database;
  const tenants = await addTenants(db);
  const stores = await createTestSchedule();
  const port = await freePort();
  const root = `http://127.0.0.1:${port}`;
  const config = { ...testConfig({ serverRoot: root, ...settings }) };
  const start = async () => {
    const started = await startApi({ db, schedule: stores.schedule, config });
    started.listen(port);
    return started;
  };
  let api = await start();
  await db.transaction((tx) => makeCommandClient(tx, new Date()));
  const dispatcher = startDispatcher({ db, box: api.deps.box, schedule: stores.schedule });
  const provider = await addProvider(db, api.deps.box);
  const siteId = await connectStore(db, tenants.partners[0].accounts[0], { provider });
  let reviews = 0;
  return {
    root,
    port,
    database,
    tenants,
    provider,
    siteId,
    api: () => api,
    async emit(count) {
      for (let left = count; left > 0; left -= 500)
        await report(
          api,
          provider,
          Array.from({ length: Math.min(left, 500) }, () => created(siteId, `R${++reviews}`)),
        );
    },
    stopApi: () => api.stop(),
    async startApi() {
      api = await start();
    },
    async stop() {
      await dispatcher.stop();
      await api.stop();
      stores.close();
      await database.drop();
    },
  };
}
