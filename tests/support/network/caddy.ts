// Runs Debian's Caddy with the shipped deploy/Caddyfile, in front of APIs on loopback.
import { spawn } from "node:child_process";
import { mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { endInOrder } from "../../../scripts/bench/end.ts";
import { ROOT } from "../../../scripts/install/install.ts";
import { program } from "../needs.ts";

const STARTS_WITHIN_MS = 20_000;

export interface Caddy {
  readonly root: string;
  stop(): Promise<void>;
}

/** Starts Caddy on `port` with the Caddyfile of the checkout `tree`. */
export async function startCaddy({
  port,
  upstreams,
  tree = ROOT,
}: {
  readonly port: number;
  readonly upstreams: readonly number[];
  readonly tree?: string;
}): Promise<Caddy> {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-caddy-"));
  const root = `http://127.0.0.1:${port}`;
  // The admin endpoint has a fixed port, so it is off: several instances may run on one machine.
  const config = join(folder, "Caddyfile");
  writeFileSync(config, `{\n\tadmin off\n}\nimport ${join(tree, "deploy/Caddyfile")}\n`);
  const log = openSync(join(folder, "caddy.log"), "a");
  const child = spawn(program("caddy"), ["run", "--adapter", "caddyfile", "--config", config], {
    stdio: ["ignore", log, log],
    env: {
      HOME: folder,
      SITE: root,
      API: upstreams.map((upstream) => `127.0.0.1:${upstream}`).join(" "),
    },
  });
  const stop = async () => {
    await endInOrder(child);
    rmSync(folder, { recursive: true, force: true });
  };
  const endMs = performance.now() + STARTS_WITHIN_MS;
  for (;;) {
    const answer = await fetch(`${root}/healthz`).catch(() => undefined);
    if (answer?.ok === true) return { root, stop };
    if (child.exitCode !== null || performance.now() > endMs) {
      await stop();
      throw new Error("Caddy does not pass requests on.");
    }
    await Bun.sleep(50);
  }
}
