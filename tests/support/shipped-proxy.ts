// Runs Debian's Caddy or nginx with a file of deploy/, on loopback.
import { chmodSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ROOT } from "../../scripts/install/install.ts";
import { program } from "./needs.ts";
import { until } from "./network/receiver.ts";

export type ShippedFile = "Caddyfile" | "Caddyfile.platform" | "nginx.conf";

interface ReferencedRows {
  readonly port: number;
  /** The ports of the APIs. */
  readonly apis: readonly number[];
  /** The port of the platform, for the files that know one. */
  readonly platform?: number;
}

export interface ShippedProxy {
  readonly root: string;
  /** The text of the log, with the lines of requests if there are any. */
  log(): string;
  /** Applies the shipped file as `edit` changes it, by a reload. */
  apply(edit: (shipped: string) => string): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the proxy on `port`, without TLS. */
export async function startShipped(
  file: ShippedFile,
  places: ReferencedRows,
): Promise<ShippedProxy> {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-proxy-"));
  // The workers of nginx run as another user if root starts it.
  chmodSync(folder, 0o755);
  const { command, reload, env, shipped } = (file === "nginx.conf" ? nginx : caddy)(
    folder,
    file,
    places,
  );
  const config = join(folder, "shipped");
  writeFileSync(config, shipped);
  const logFile = join(folder, "log");
  const said = openSync(logFile, "a");
  const options = {
    env: { PATH: process.env["PATH"] ?? "", HOME: folder, ...env },
    stdout: said,
    stderr: said,
  };
  const child = Bun.spawn(command, options);
  const log = () => readFileSync(logFile, "utf8");
  const root = `http://127.0.0.1:${places.port}`;
  const stop = async () => {
    child.kill();
    await child.exited;
    rmSync(folder, { recursive: true, force: true });
  };
  await until(`${file} answers`, async () => {
    if (child.exitCode !== null) throw new Error(log());
    return (await fetch(root).catch(() => undefined)) !== undefined;
  });
  return {
    root,
    log,
    stop,
    async apply(edit) {
      writeFileSync(config, edit(shipped));
      const before = workersOf(child.pid);
      if ((await Bun.spawn(reload, options).exited) !== 0) throw new Error(log());
      // The workers of nginx with the former configuration still take connections for a moment.
      await until("the former workers are gone", () => {
        const present = workersOf(child.pid);
        return !before.some((pid) => present.includes(pid));
      });
    },
  };
}

function workersOf(pid: number): string[] {
  return Bun.spawnSync(["pgrep", "-P", String(pid)])
    .stdout.toString()
    .split("\n")
    .filter(Boolean);
}

interface Started {
  readonly command: string[];
  readonly reload: string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The file of deploy/ with the places of this machine. */
  readonly shipped: string;
}

function caddy(
  folder: string,
  file: ShippedFile,
  { port, apis, platform }: ReferencedRows,
): Started {
  const config = join(folder, "shipped");
  const options = ["--adapter", "caddyfile", "--config", config];
  return {
    command: [program("caddy"), "run", ...options],
    reload: [program("caddy"), "reload", ...options],
    env: {
      SITE: `http://127.0.0.1:${port}`,
      API: apis.map((api) => `127.0.0.1:${api}`).join(" "),
      PLATFORM: `127.0.0.1:${platform}`,
    },
    // The administration has a fixed port by default, and several instances may run on one machine.
    shipped: read(file).replace(/^\{$/m, `{\n\tadmin unix/${folder}/admin.sock`),
  };
}

/** The settings of Debian's /etc/nginx/nginx.conf that concern requests. */
function nginx(
  folder: string,
  file: ShippedFile,
  { port, apis, platform }: ReferencedRows,
): Started {
  const main = join(folder, "nginx.conf");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
    .join("\n");
  writeFileSync(
    main,
    `daemon off; pid ${folder}/pid; error_log ${folder}/log; worker_processes auto;
     events { worker_connections 768; }
     http { access_log ${folder}/log; ${temporary} include ${folder}/shipped; }`,
  );
  const command = [program("nginx"), "-p", folder, "-c", main];
  const [first = 0, second] = apis;
  return {
    command,
    reload: [...command, "-s", "reload"],
    shipped: read(file)
      .replace("listen 443 ssl;", `listen 127.0.0.1:${port};`)
      .replaceAll(/^ *ssl_certificate.*$/gm, "")
      .replaceAll(/\/var\/log\/nginx\/\w+\.log/g, join(folder, "log"))
      .replace(/127\.0\.0\.1:8080\b/, `127.0.0.1:${platform}`)
      .replace(/127\.0\.0\.1:3000\b/, `127.0.0.1:${first}`)
      .replace(/.*127\.0\.0\.1:3001\b.*/, (line) =>
        second === undefined ? "" : line.replace("3001", String(second)),
      ),
  };
}

const read = (file: ShippedFile) => readFileSync(join(ROOT, "deploy", file), "utf8");
