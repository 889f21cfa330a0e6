import { chmodSync, mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startStores } from "../demo/stores/keep.ts";
import { settings, useExecutables } from "./use.ts";

/** Runs the executables of a folder with embedded stores, in an otherwise empty temporary folder. */
export async function tryExecutables(executables: string, commit: string): Promise<void> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "reviewrelay-executable-")));
  // If this process runs as root, PostgreSQL runs as another user, which must be able to pass through this folder.
  chmodSync(folder, 0o711);
  const stores = await startStores({
    folder,
    // The keeper deletes the folder, and ends processes that still use it.
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
