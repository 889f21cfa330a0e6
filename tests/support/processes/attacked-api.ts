import { randomBytes } from "node:crypto";

import { ApiProcess } from "./api-process.ts";
import { createDatabase, type TestDatabase } from "../postgres.ts";
import { addTenants, type Tenants } from "../tenants.ts";

/** The API as a separate process with two partners, which attack tests reach only over its socket. */
export interface AttackedApi {
  readonly database: TestDatabase;
  readonly tenants: Tenants;
  readonly api: ApiProcess;
  stop(): Promise<void>;
}

export async function startAttackedApi(
  settings: Readonly<Record<string, string>> = {},
): Promise<AttackedApi> {
  const database = await createDatabase();
  const tenants = await addTenants(database.db);
  const api = await ApiProcess.start({
    DATABASE_URL: database.url,
    MASTER_KEY: randomBytes(32).toString("base64"),
    ...settings,
  });
  return {
    database,
    tenants,
    api,
    async stop() {
      api.kill();
      await database.drop();
    },
  };
}
