// `bun run seed` fills an empty database with demo data. The server's settings contain the database and the master key.
import { join, resolve } from "node:path";

import { connect } from "../db/client.ts";
import { causeOf } from "../db/errors.ts";
import { ConfigError, EXIT_CONFIG, readConfig } from "../src/lib/config.ts";
import { createSecretBox } from "../src/lib/secrets.ts";
import { seedDemo } from "./demo/seed/seed-demo.ts";

async function main(): Promise<void> {
  const config = readConfig();
  const dataDir = resolve(process.env["DATA_DIR"] || ".data");
  const db = connect(config.maintenanceDatabaseUrl, { max: 1, name: "reviewrelay-seed" });
  try {
    const created = await seedDemo({
      db,
      box: createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious }),
      now: new Date(),
      serverRoot: config.serverRoot,
      dataDir,
      smtp:
        config.smtpUrl === undefined
          ? undefined
          : { url: config.smtpUrl, mailDir: join(dataDir, "mail") },
    });
    const target = join(dataDir, "demo.json");
    console.log(
      created
        ? `Demo data written; see ${target}.`
        : "The database already has data; nothing was changed.",
    );
  } finally {
    await db.close();
  }
}

try {
  await main();
} catch (error) {
  const cause = causeOf(error);
  console.error(cause instanceof Error ? cause.message : cause);
  process.exit(error instanceof ConfigError ? EXIT_CONFIG : 1);
}
