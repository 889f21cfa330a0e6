import { spawn } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";

export interface Pooler {
  readonly port: number;
  stop(): Promise<void>;
}

const READY_WITHIN_MS = 5_000;
/** Debian's unprivileged account, because PgBouncer does not run as root. */
const NOBODY = { uid: 65_534, gid: 65_534 };

/** Returns the path of PgBouncer; null if it is not installed. */
export function findPooler(): string | null {
  return Bun.which("pgbouncer");
}

/** Starts PgBouncer in transaction mode, in front of one database. */
export async function startPooler(
  folder: string,
  { url, port }: { readonly url: string; readonly port: number },
): Promise<Pooler> {
  const home = join(folder, "pgbouncer");
  mkdirSync(home, { mode: 0o700 });
  const database = new URL(url);
  const config = join(home, "pgbouncer.ini");
  const users = join(home, "users.txt");
  writeFileSync(users, `"${database.username}" "${database.password}"\n`);
  const lines = [
    "[databases]",
    `* = host=127.0.0.1 port=${database.port}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "pool_mode = transaction",
    "auth_type = scram-sha-256",
    `auth_file = ${users}`,
    "max_client_conn = 500",
    "default_pool_size = 40",
    "server_round_robin = 1",
  ];
  writeFileSync(config, `${lines.join("\n")}\n`);
  const owner = process.getuid?.() === 0 ? NOBODY : undefined;
  if (owner !== undefined)
    for (const path of [home, config, users]) chownSync(path, owner.uid, owner.gid);
  chmodSync(home, 0o700);
  const log = openSync(join(folder, "pgbouncer.log"), "a");
  const child = spawn(findPooler() ?? "", [config], {
    ...owner,
    cwd: "/",
    stdio: ["ignore", log, log],
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  const endMs = performance.now() + READY_WITHIN_MS;
  while (!(await isListening(port))) {
    if (performance.now() > endMs) {
      await stop();
      throw new Error("PgBouncer did not start; pgbouncer.log says why.");
    }
    await Bun.sleep(50);
  }
  return { port, stop };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: "127.0.0.1", port });
    const say = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => say(true));
    socket.once("error", () => say(false));
  });
}
