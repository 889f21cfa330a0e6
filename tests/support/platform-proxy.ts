// Runs a proxy for a platform and ReviewRelay below one host name: nginx or Caddy with the shipped configuration.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "../../scripts/install/install.ts";
import { lacks } from "./needs.ts";
import { startShipped } from "./shipped-proxy.ts";

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
export async function startPlatformProxy(
  name: ProxyName,
  { port, platform, reviewrelay }: Ports,
): Promise<PlatformProxy> {
  const { file, group } = CONFIGURATIONS[name];
  const { root, apply, stop } = await startShipped(file, { port, platform, apis: [reviewrelay] });
  return {
    root,
    stop,
    // Removes the lines of all other groups, like commenting them out.
    move: (groups) =>
      apply((shipped) =>
        shipped.replaceAll(group, (lines, moved: string) =>
          groups.includes(moved.toLowerCase().replace("_", "-")) ? lines : "",
        ),
      ),
  };
}

/** The file of deploy/ for each proxy, and the lines of a group of paths in it. */
const CONFIGURATIONS = {
  nginx: { file: "nginx.conf", group: / {4}# (.*)\n((?: {4}~.*\n)+)/g },
  caddy: { file: "Caddyfile.platform", group: /\thandle @(.*) (\{\n.*\n\t\})\n/g },
} as const;
