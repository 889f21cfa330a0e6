import { chmodSync, mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startStores } from "../demo/stores/keep.ts";
import { settings, useExecutables } from "./use.ts";

/** Uses the executables of a folder with embedded stores, in a temporary folder that has nothing else. */
export async function tryExecutables(executables: string, commit: string): Promise<void> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "reviewrelay-executable-")));
  // Root's PostgreSQL runs as another user and must pass through this folder.
  chmodSync(folder, 0o711);
  const stores = await startStores({
    folder,
    // The keeper removes the folder, and ends processes that still use it.
    temporary: true,
    logFile: join(folder, "stores.log"),
    postgres: { durable: false },
    redis: true,
  });
  try {
    const env = {
      ...(await settings()),
      DATABASE_URL: stores.databaseUrl ?? "",
      REDIS_URL: stores.redisUrl ?? "",
      MASTER_KEY_FILE: join(folder, "master.key"),
    };
    const server = [join(executables, "reviewrelay-server")];
    const command = [join(executables, "reviewrelay")];
    await useExecutables({ server, command, folder, env }, commit);
    console.log("Started: from an empty database to a signed delivery.");
  } finally {
    await stores.stop();
  }
}
