import { spawn } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { freePort } from "./keep.ts";
import { hasEnded } from "./processes.ts";

const NOBODY = 65_534;

export interface PgBouncer {
  /** Replaces host and port of a URL by those of the pooler. */
  in(url: string): string;
  stop(): Promise<void>;
}

export interface PgBouncerOptions {
  readonly mode: "transaction" | "session" | "statement";
  readonly poolSize?: number;
  /** A statement that the pooler runs first in each session. */
  readonly connectQuery?: string;
}

/** Starts PgBouncer (`program` is its path) in front of a server, with fewer server connections than clients. */
export async function runPgBouncer(
  program: string,
  url: string,
  { mode, poolSize = 4, connectQuery }: PgBouncerOptions,
): Promise<PgBouncer> {
  const { hostname, port, username, password } = new URL(url);
  const folder = await mkdtemp(join(tmpdir(), "pgbouncer-"));
  const listen = await freePort();
  const secret = password === "" ? "" : ` password=${decodeURIComponent(password)}`;
  const server = `host=${hostname} port=${port || 5432} user=${username}${secret}`;
  const file = join(folder, "pgbouncer.ini");
  const settings = [
    "[databases]",
    `* = ${server}${connectQuery === undefined ? "" : ` connect_query='${connectQuery}'`}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${listen}`,
    "unix_socket_dir =",
    "auth_type = any",
    `pool_mode = ${mode}`,
    `default_pool_size = ${poolSize}`,
    "max_client_conn = 500",
  ];
  await writeFile(file, `${settings.join("\n")}\n`);
  await Promise.all([chmod(folder, 0o755), chmod(file, 0o644)]);
  const asNobody = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const child = spawn(program, [file], {
    stdio: ["ignore", "ignore", "pipe"],
    ...asNobody,
  });
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => void (said += chunk.toString()));
  while (!said.includes("process up") && !hasEnded(child)) await Bun.sleep(10);
  if (hasEnded(child)) throw new Error(`PgBouncer ended: ${said}`);
  return {
    in(address) {
      const through = new URL(address);
      through.hostname = "127.0.0.1";
      through.port = String(listen);
      return through.href;
    },
    async stop() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      if (child.kill("SIGKILL")) await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
