// Runs a proxy for a platform and ReviewRelay below one host name: nginx or Caddy with the shipped configuration.
import { chmodSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ROOT } from "../../../scripts/install/install.ts";
import { until } from "./receiver.ts";
import { lacks } from "../needs.ts";

export type ProxyName = "nginx" | "caddy";

/** The paths of each group, as the table of docs/operations/moving-in.md lists them. */
export const GROUPS: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  [
    ...readFileSync(join(ROOT, "docs/operations/moving-in.md"), "utf8").matchAll(
      /^\| (\S+) \| (`\/.*`) \|/gm,
    ),
  ].map(([, group = "", listed = ""]) => [
    group,
    [...listed.matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path),
  ]),
);

/** Returns whether a path is that of an entry of the table, or below it. */
export const isBelow = (entry: string, path: string) =>
  path === entry || path.startsWith(`${entry}/`);

interface Ports {
  readonly port: number;
  readonly platform: number;
  readonly reviewrelay: number;
}

export interface PlatformProxy {
  readonly root: string;
  /** Applies the configuration with only these groups of paths at ReviewRelay. */
  move(groups: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the proxy that is installed, or one that only follows the table of the guide. */
export function startAnyProxy(ports: Ports): Promise<PlatformProxy> {
  const name = (["nginx", "caddy"] as const).find((one) => !lacks(one));
  return name === undefined ? startPlainProxy(ports) : startPlatformProxy(name, ports);
}

async function startPlainProxy({ port, platform, reviewrelay }: Ports): Promise<PlatformProxy> {
  let moved = Object.values(GROUPS).flat();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const at = moved.some((entry) => isBelow(entry, pathname)) ? reviewrelay : platform;
      const body = request.method === "GET" ? null : await request.arrayBuffer();
      const { method, headers } = request;
      const options = { method, headers, body, redirect: "manual", decompress: false } as const;
      return fetch(`http://127.0.0.1:${at}${pathname}${search}`, options);
    },
  });
  return {
    root: `http://127.0.0.1:${port}`,
    async move(groups) {
      moved = groups.flatMap((group) => GROUPS[group] ?? []);
    },
    stop: () => server.stop(true),
  };
}

/** Starts nginx or Caddy in front of a platform and ReviewRelay; every group of paths is at ReviewRelay. */
export async function startPlatformProxy(name: ProxyName, ports: Ports): Promise<PlatformProxy> {
  const folder = mkdtempSync(join(tmpdir(), `reviewrelay-${name}-`));
  // The workers of nginx run as another user if root starts it.
  chmodSync(folder, 0o755);
  const { command, write, reload } = PROXIES[name](folder, ports);
  write(undefined);
  const log = openSync(join(folder, "log"), "a");
  const env = { PATH: process.env["PATH"] ?? "", HOME: folder };
  const child = Bun.spawn(command, { env, stdout: log, stderr: log });
  const root = `http://127.0.0.1:${ports.port}`;
  await until(`${name} answers`, async () => {
    if (child.exitCode !== null) throw new Error(readFileSync(join(folder, "log"), "utf8"));
    return (await fetch(root).catch(() => undefined)) !== undefined;
  });
  return {
    root,
    async move(groups) {
      write(groups);
      const before = workersOf(child.pid);
      const applied = Bun.spawn(reload, { env, stdout: log, stderr: log });
      if ((await applied.exited) !== 0) throw new Error(readFileSync(join(folder, "log"), "utf8"));
      // The workers of nginx with the former configuration still take connections for a moment.
      await until("the former workers are gone", async () => {
        const present = workersOf(child.pid);
        return !before.some((pid) => present.includes(pid));
      });
    },
    async stop() {
      child.kill();
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
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
  /** Writes the configuration with only these groups of paths at ReviewRelay, or with all. */
  readonly write: (groups: readonly string[] | undefined) => void;
}

const PROXIES: Readonly<Record<ProxyName, (folder: string, ports: Ports) => Started>> = {
  nginx(folder, { port, platform, reviewrelay }) {
    const main = join(folder, "main.conf");
    const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
      .join("\n");
    writeFileSync(
      main,
      `daemon off; pid ${folder}/pid; error_log stderr;
       events {}
       http { access_log off; ${temp} include ${folder}/shipped.conf; }`,
    );
    const command = ["nginx", "-p", folder, "-c", main];
    return {
      command,
      reload: [...command, "-s", "reload"],
      write(groups) {
        const shipped = read("nginx.conf")
          .replace("listen 443 ssl;", `listen 127.0.0.1:${port};`)
          .replaceAll(/^ *ssl_certificate.*$/gm, "")
          .replace("127.0.0.1:8080", `127.0.0.1:${platform}`)
          .replace("127.0.0.1:3000", `127.0.0.1:${reviewrelay}`);
        writeFileSync(
          join(folder, "shipped.conf"),
          withGroups(shipped, / {4}# (.*)\n((?: {4}~.*\n)+)/g, groups),
        );
      },
    };
  },
  caddy(folder, { port, platform, reviewrelay }) {
    const config = join(folder, "Caddyfile");
    const options = ["--adapter", "caddyfile", "--config", config];
    return {
      command: ["caddy", "run", ...options],
      reload: ["caddy", "reload", ...options],
      write(groups) {
        const shipped = read("Caddyfile.platform")
          .replace("{$SITE:reviews.example}", `http://127.0.0.1:${port}`)
          .replace("{$PLATFORM:127.0.0.1:8080}", `127.0.0.1:${platform}`)
          .replace("{$API:127.0.0.1:3000}", `127.0.0.1:${reviewrelay}`);
        const admin = `{\n\tadmin unix/${folder}/admin.sock\n}\n`;
        writeFileSync(
          config,
          admin + withGroups(shipped, /\thandle @(.*) (\{\n.*\n\t\})\n/g, groups),
        );
      },
    };
  },
};

const read = (name: string) => readFileSync(join(ROOT, "deploy", name), "utf8");

/** Removes the lines of all other groups, like commenting them out. */
function withGroups(text: string, pattern: RegExp, groups: readonly string[] | undefined): string {
  return text.replaceAll(pattern, (lines, group: string) =>
    groups === undefined || groups.includes(group.toLowerCase().replace("_", "-")) ? lines : "",
  );
}
