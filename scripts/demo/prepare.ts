// Prepares the demo: a generated master key, seeded data, and demo.json with their credentials.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { connect } from "../../db/client.ts";
import { createSecretBox } from "../../src/lib/secrets.ts";
import { type Demo, seedDemo } from "./seed/seed-demo.ts";
import { writeFileWhole } from "./data-dir.ts";

/**
 * Returns the master key of the folder. It is generated at the first start and kept, because another key could not
 * decrypt the stored secrets.
 */
export function masterKey(dataDir: string): string {
  const path = join(dataDir, "master.key");
  if (!existsSync(path)) writeFileWhole(path, `${randomBytes(32).toString("base64")}\n`);
  return readFileSync(path, "utf8").trim();
}

interface DemoOptions {
  dataDir: string;
  databaseUrl: string;
  masterKey: string;
  serverRoot: string;
  smtp: { url: string; mailDir: string } | undefined;
}

/**
 * Seeds an empty database. Returns undefined if the database contains data that the demo.json of this folder does not
 * describe.
 */
export async function prepareDemo(options: DemoOptions): Promise<Demo | undefined> {
  const db = connect(options.databaseUrl, { max: 1, name: "reviewrelay-seed" });
  try {
    await seedDemo({
      db,
      box: createSecretBox({
        current: Buffer.from(options.masterKey, "base64"),
        previous: undefined,
      }),
      now: new Date(),
      serverRoot: options.serverRoot,
      dataDir: options.dataDir,
      smtp: options.smtp,
    });
  } finally {
    await db.close();
  }
  return refresh(options);
}

/** Updates the URLs in demo.json, which may differ from those of the start that wrote it. */
function refresh({ dataDir, serverRoot, smtp }: DemoOptions): Demo | undefined {
  const path = join(dataDir, "demo.json");
  if (!existsSync(path)) return undefined;
  const demo = JSON.parse(readFileSync(path, "utf8")) as Demo;
  const current: Demo = {
    ...demo,
    base_url: serverRoot + demo.base_url.slice(demo.server_root.length),
    server_root: serverRoot,
    smtp: smtp === undefined ? null : { url: smtp.url, mail_dir: smtp.mailDir },
  };
  writeFileWhole(path, `${JSON.stringify(current, null, 2)}\n`);
  return current;
}
