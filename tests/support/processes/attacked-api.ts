import { randomBytes } from "node:crypto";

import { systemClock } from "../../../src/lib/clock.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { ApiProcess } from "./api-process.ts";
import { createDatabase, type TestDatabase } from "../postgres.ts";
import { addSigningKeys } from "../signing-keys.ts";
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
  const { MASTER_KEY = randomBytes(32).toString("base64") } = settings;
  const box = createSecretBox({ current: Buffer.from(MASTER_KEY, "base64") });
  await addSigningKeys(database.db, box, systemClock.now());
  const api = await ApiProcess.start({
    DATABASE_URL: database.url,
    MASTER_KEY,
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
