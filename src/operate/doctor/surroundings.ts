// Checks of Redis, TLS, descriptors, the server's name, mail and receivers.
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { connect as connectTls } from "node:tls";

import { createTransport } from "nodemailer";

import {
  budgetOf,
  countDescriptors,
  MIN_DESCRIPTORS,
  WANTED_DESCRIPTORS,
} from "../../../dispatcher/delivery/limits.ts";
import type { Config } from "../../lib/config.ts";
import { resolveChecked } from "../../lib/egress.ts";
import { systemLookup } from "../../lib/name-resolver.ts";
import { checkServerIdentity } from "../../lib/certificates.ts";
import { openTunnel } from "../../lib/checked-http.ts";
import { openRedis } from "../../lib/redis.ts";
import type { Log } from "../../lib/log.ts";
import { probeRedis } from "../../outbox/schedule.ts";
import { advice, fault, naming, ok, type Finding } from "./finding.ts";

export const OLDEST_REDIS = 7;
const HTTPS_MS = 6_000;
const HTTPS_PORT = 443;

export async function checkRedis(config: Config, log: Log): Promise<Finding> {
  const redis = openRedis(config.redisUrl, log);
  try {
    await new Promise((resolve, reject) => redis.once("ready", resolve).once("error", reject));
    const server = await redis.info("server");
    const version = /(?:valkey|redis)_version:(\S+)/.exec(server)?.[1] ?? "unknown";
    const mode = /redis_mode:(\S+)/.exec(server)?.[1];
    if (mode === "cluster")
      return fault(
        `Redis ${version}, a cluster`,
        "Use a single server or Sentinel instead of a Redis Cluster.",
      );
    if (Number.parseInt(version, 10) < OLDEST_REDIS)
      return fault(`Redis ${version}`, `Use Redis ${OLDEST_REDIS} or later, or Valkey.`);
    await probeRedis(redis, config.redisPrefix);
    const policy = /maxmemory_policy:(\S+)/.exec(await redis.info("memory"))?.[1] ?? "noeviction";
    if (policy !== "noeviction")
      return advice(
        `Redis ${version} evicts keys (${policy})`,
        "Set maxmemory-policy noeviction: after an eviction, a delivery starts some seconds later.",
      );
    return ok(`Redis ${version}`);
  } finally {
    redis.disconnect();
  }
}

const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/**
 * Checks whether connections to PostgreSQL and Redis on other machines are encrypted, and whether they verify the
 * server.
 */
export function checkTls(
  config: Pick<Config, "databaseUrl" | "maintenanceDatabaseUrl" | "redisUrl">,
): Finding {
  const open = [
    ["DATABASE_URL", config.databaseUrl, /[?&]sslmode=verify-full(?:&|$)/],
    ["MAINTENANCE_DATABASE_URL", config.maintenanceDatabaseUrl, /[?&]sslmode=verify-full(?:&|$)/],
    ["REDIS_URL", config.redisUrl, /^rediss/],
  ] as const;
  const names = open.flatMap(([name, url, isSafe]) =>
    isSafe.test(url) || hostsOf(url).every((host) => LOOPBACK_HOST.test(host)) ? [] : [name],
  );
  if (names.length === 0) return ok("stores on other machines are connected by TLS");
  return advice(
    `${names.join(", ")}: on another machine, without TLS that verifies the server`,
    "Use ?sslmode=verify-full and rediss:// (docs/operations/production.md).",
  );
}

/**
 * Returns the hosts of a URL without their ports. A URL of PostgreSQL or Redis may have several hosts, separated by
 * commas.
 */
export function hostsOf(url: string): string[] {
  const [, hosts = ""] = /^[a-z+]+:\/\/(?:[^/?]*@)?([^/?]*)/.exec(url) ?? [];
  return hosts.split(",").map((one) => one.replace(/:\d+$/, ""));
}

export function checkDescriptors(): Finding {
  const count = countDescriptors();
  const said = `${count} descriptors`;
  const remedy = `Start dispatchers with ulimit -n ${WANTED_DESCRIPTORS} or more (LimitNOFILE=, ulimits:).`;
  if (budgetOf(count) === undefined)
    return fault(`${said}; a dispatcher needs ${MIN_DESCRIPTORS}`, remedy);
  return count < WANTED_DESCRIPTORS
    ? advice(`${said}: limits concurrent requests`, remedy)
    : ok(said);
}

export async function checkName({ serverRoot }: Config): Promise<Finding> {
  const { hostname, protocol } = new URL(serverRoot);
  const addresses = await lookup(hostname.replace(/^\[|\]$/g, ""), { all: true });
  const said = `${serverRoot} is ${addresses.map(({ address }) => address).join(", ")}`;
  if (protocol === "https:") return ok(said);
  return advice(
    `${said}, without TLS`,
    "Set SERVER_ROOT to the https origin that users and clients use: it is the issuer of all tokens.",
  );
}

export async function checkMail({ smtpUrl, mailFrom }: Config): Promise<Finding> {
  if (smtpUrl === undefined)
    return advice(
      "no SMTP_URL",
      "Set SMTP_URL and MAIL_FROM: without them, all mails stay queued, including invitations and codes.",
    );
  const transport = createTransport({ url: smtpUrl, connectionTimeout: HTTPS_MS });
  try {
    await transport.verify();
  } finally {
    transport.close();
  }
  if (!mailFrom.address.endsWith("@localhost"))
    return ok(`the server accepts the sign-in; mails are sent from ${mailFrom.address}`);
  return advice(
    `the server accepts the sign-in; mails are sent from ${mailFrom.address}`,
    "Set MAIL_FROM to an address in your own domain: receivers reject mails from localhost.",
  );
}

/** Opens a TLS connection in the same way as a delivery, and sends nothing. */
export async function checkHttps(url: URL, config: Config): Promise<Finding> {
  const host = url.hostname;
  const port = Number(url.port) || HTTPS_PORT;
  const resolution = await resolveChecked(host, config.egress, { lookup: systemLookup });
  if (resolution.kind !== "resolved")
    return fault(
      naming([host], resolution.reason),
      "Check the name; WEBHOOK_ALLOWED_NETWORKS allows networks that are blocked by default.",
    );
  const [address = ""] = resolution.addresses;
  const tls = { host, ca: config.webhookCa };
  const signal = AbortSignal.timeout(HTTPS_MS);
  if (config.webhookProxy === undefined) await openTls({ address, port, tls }, signal);
  else (await openTunnel(config.webhookProxy, { address, port, tls }, signal)).destroy();
  const way = config.webhookProxy === undefined ? "" : " through the proxy";
  return ok(`${host} (${address}) answers with a trusted certificate${way}`);
}

function openTls(
  {
    address,
    port,
    tls,
  }: { address: string; port: number; tls: { host: string; ca: readonly string[] } },
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({
      host: address,
      port,
      checkServerIdentity,
      ...(isIP(tls.host) === 0 && { servername: tls.host }),
      ...(tls.ca.length > 0 && { ca: [...tls.ca] }),
    });
    const end = (settle: () => void) => {
      socket.destroy();
      settle();
    };
    socket.once("secureConnect", () => end(resolve));
    socket.once("error", (error) => end(() => reject(error)));
    signal.addEventListener("abort", () => end(() => reject(new Error("no response"))), {
      once: true,
    });
  });
}
