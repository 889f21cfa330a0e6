import { readCertificates } from "./certificates.ts";
import { parseProxyUrl, type EgressProxy } from "./egress-proxy.ts";
import { parseNetworks, type EgressPolicy } from "./egress.ts";
import { LOG_LEVELS, type LogLevel } from "./log.ts";
import { checkRedisUrl } from "./redis-url.ts";

/** Who mails come from, as a reader sees it. */
export interface Mailbox {
  readonly name: string;
  readonly address: string;
}

/** What one process needs to know, read once at start. Defaults are the production ones; `scripts/start.ts` sets the demo's. */
export interface Config {
  readonly databaseUrl: string;
  /** To Postgres at the most, by one process, besides those for leases, readiness and upkeep. */
  readonly connections: Readonly<Record<"api" | "intake" | "dispatcher", number>>;
  readonly redisUrl: string;
  readonly redisPrefix: string;
  /** Without it mails stay queued. */
  readonly smtpUrl: string | undefined;
  readonly mailFrom: Mailbox;
  readonly port: number;
  readonly host: string;
  /** `{server_root}` of the specification, without a slash at its end. */
  readonly serverRoot: string;
  readonly metricsPort: number | undefined;
  readonly retryDelaysMs: readonly number[];
  readonly batchHourMs: number;
  readonly lockScheduleS: readonly number[];
  readonly accessTokenTtlS: number;
  readonly refreshTokenTtlS: number;
  readonly refreshLeewayS: number;
  readonly otpTtlS: number;
  readonly otpCooldownS: number;
  readonly deliveryTimeoutMs: number;
  readonly retentionDays: number;
  readonly rateLimits: boolean;
  /** Requests per minute, and how many may come at once. */
  readonly rateLimit: Readonly<
    Record<"user" | "ip" | "signIn", { readonly perMinute: number; readonly burst: number }>
  >;
  readonly trustedProxies: readonly string[];
  /** Origins, or whole addresses, that single sign-on may end at besides the dashboard. */
  readonly ssoReturnTo: readonly string[];
  /** Where webhooks may go: `WEBHOOK_ALLOW_HTTP`, `WEBHOOK_ALLOWED_NETWORKS`. */
  readonly egress: EgressPolicy;
  /** PEM certificates that receivers may be signed by, besides the system's: those of `WEBHOOK_CA_FILE`. */
  readonly webhookCa: readonly string[];
  /** `WEBHOOK_PROXY_URL`; without it receivers are connected to directly. */
  readonly webhookProxy: EgressProxy | undefined;
  readonly masterKey: Uint8Array;
  readonly masterKeyPrevious: Uint8Array | undefined;
  readonly logLevel: LogLevel;
  /** Set by the supervisor: without that parent the process stops. */
  readonly parentPid: number | undefined;
}

/** Exit status of a process whose settings are wrong (EX_CONFIG of sysexits.h): restarting it cannot help. */
export const EXIT_CONFIG = 78;

/** Carries every fault at once, one line each. */
export class ConfigError extends Error {
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    super(faults.join("\n"));
    this.name = "ConfigError";
    this.faults = faults;
  }
}

type Env = Readonly<Record<string, string | undefined>>;

const DAY_S = 86_400;
const MASTER_KEY_BYTES = 32;
/** 4 attempts have 3 delays between them (contract 7.7). */
const RETRY_DELAYS = 3;

/** Reads and checks every setting. Throws a ConfigError that names all faults. */
export function readConfig(env: Env = process.env): Config {
  const read = new Reader(env);
  const host = read.text("HOST", "127.0.0.1");
  const port = read.integer("PORT", 3000, [1, 65_535]);
  const config: Config = {
    databaseUrl: read.url("DATABASE_URL", ["postgres:", "postgresql:"], firstHost),
    connections: connectionsOf(read),
    redisUrl: read.redisUrl("REDIS_URL"),
    redisPrefix: read.text("REDIS_PREFIX", "rr:"),
    smtpUrl: read.optional("SMTP_URL", () => read.url("SMTP_URL", ["smtp:", "smtps:"])),
    mailFrom: read.mailbox("MAIL_FROM", "ReviewRelay <no-reply@localhost>"),
    port,
    host,
    serverRoot: read.origin(
      "SERVER_ROOT",
      `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    ),
    metricsPort: read.optional("METRICS_PORT", () => read.integer("METRICS_PORT", 0, [1, 65_535])),
    retryDelaysMs: read.integers("RETRY_DELAYS_MS", "60000,300000,1800000", {
      length: RETRY_DELAYS,
      min: 1,
    }),
    batchHourMs: read.integer("BATCH_HOUR_MS", 3_600_000, [1, 3_600_000]),
    lockScheduleS: read.integers("LOCK_SCHEDULE_S", "60,120,240,480,900", {
      length: undefined,
      min: 1,
    }),
    accessTokenTtlS: read.integer("ACCESS_TOKEN_TTL_S", DAY_S, [1, 30 * DAY_S]),
    refreshTokenTtlS: read.integer("REFRESH_TOKEN_TTL_S", 30 * DAY_S, [1, 366 * DAY_S]),
    refreshLeewayS: read.integer("REFRESH_LEEWAY_S", 10, [0, 300]),
    otpTtlS: read.integer("OTP_TTL_S", 600, [1, 3_600]),
    otpCooldownS: read.integer("OTP_COOLDOWN_S", 60, [0, 3_600]),
    deliveryTimeoutMs: read.integer("DELIVERY_TIMEOUT_MS", 15_000, [50, 60_000]),
    retentionDays: read.integer("RETENTION_DAYS", 30, [1, 3_650]),
    rateLimits: read.choice("RATE_LIMITS", "on", ["on", "off"]) === "on",
    rateLimit: rateLimitOf(read),
    trustedProxies: read.networks("TRUSTED_PROXIES"),
    ssoReturnTo: read.places("SSO_RETURN_TO"),
    egress: {
      allowHttp: read.choice("WEBHOOK_ALLOW_HTTP", "0", ["0", "1"]) === "1",
      allowedNetworks: read.networks("WEBHOOK_ALLOWED_NETWORKS").flatMap(parseNetworks),
    },
    webhookCa: read.parsed("WEBHOOK_CA_FILE", readCertificates) ?? [],
    webhookProxy: read.parsed("WEBHOOK_PROXY_URL", parseProxyUrl),
    masterKey: read.key("MASTER_KEY") ?? new Uint8Array(),
    masterKeyPrevious: read.optional("MASTER_KEY_PREVIOUS", () => read.key("MASTER_KEY_PREVIOUS")),
    logLevel: read.choice("LOG_LEVEL", "info", LOG_LEVELS),
    parentPid: read.optional("PARENT_PID", () => read.integer("PARENT_PID", 1, [1, 2 ** 31])),
  };
  if (read.faults.length > 0) throw new ConfigError(read.faults);
  return Object.freeze(config);
}

function connectionsOf(read: Reader): Config["connections"] {
  return {
    api: read.integer("API_CONNECTIONS", 8, [1, 1_000]),
    intake: read.integer("INTAKE_CONNECTIONS", 6, [1, 1_000]),
    dispatcher: read.integer("DISPATCHER_CONNECTIONS", 4, [1, 1_000]),
  };
}

function rateLimitOf(read: Reader): Config["rateLimit"] {
  return {
    user: {
      perMinute: read.integer("RATE_LIMIT_TOKEN_PER_MINUTE", 600, [1, 1_000_000]),
      burst: read.integer("RATE_LIMIT_TOKEN_BURST", 300, [1, 1_000_000]),
    },
    ip: {
      perMinute: read.integer("RATE_LIMIT_IP_PER_MINUTE", 1_200, [1, 1_000_000]),
      burst: read.integer("RATE_LIMIT_IP_BURST", 600, [1, 1_000_000]),
    },
    signIn: {
      perMinute: read.integer("RATE_LIMIT_SIGN_IN_PER_MINUTE", 300, [1, 1_000_000]),
      burst: read.integer("RATE_LIMIT_SIGN_IN_BURST", 300, [1, 1_000_000]),
    },
  };
}

/** Each method answers a usable value even for a bad setting, and notes the fault, so that all are found in one go. */
class Reader {
  readonly faults: string[] = [];
  readonly #env: Env;

  constructor(env: Env) {
    this.#env = env;
  }

  text(name: string, fallback: string): string {
    return this.#get(name) ?? fallback;
  }

  optional<T>(name: string, read: () => T): T | undefined {
    return this.#get(name) === undefined ? undefined : read();
  }

  /** Nothing where the setting is absent or bad. `parse` throws with what is wrong, in words fit for everyone. */
  parsed<T>(name: string, parse: (text: string) => T): T | undefined {
    const text = this.#get(name);
    try {
      return text === undefined ? undefined : parse(text);
    } catch (error) {
      this.#fault(name, error instanceof Error ? error.message : "cannot be read");
      return undefined;
    }
  }

  integer(name: string, fallback: number, [min, max]: readonly [number, number]): number {
    const text = this.#get(name) ?? String(fallback);
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    this.#fault(name, `must be a whole number from ${min} to ${max}`);
    return fallback;
  }

  integers(
    name: string,
    fallback: string,
    rule: { length: number | undefined; min: number },
  ): number[] {
    const items = (this.#get(name) ?? fallback).split(",").map((item) => item.trim());
    const good = items.every((item) => /^\d{1,12}$/.test(item) && Number(item) >= rule.min);
    const many =
      rule.length === undefined ? "whole numbers" : `exactly ${rule.length} whole numbers`;
    if (!good || (rule.length !== undefined && items.length !== rule.length))
      this.#fault(name, `must be ${many} of at least ${rule.min}, separated by commas`);
    return items.map(Number);
  }

  choice<T extends string>(name: string, fallback: T, allowed: readonly T[]): T {
    const text = this.#get(name) ?? fallback;
    const value = allowed.find((one) => one === text);
    if (value === undefined) this.#fault(name, `must be one of ${allowed.join(", ")}`);
    return value ?? fallback;
  }

  list(name: string): string[] {
    const items = (this.#get(name) ?? "").split(",").map((item) => item.trim());
    return items.filter((item) => item !== "");
  }

  /** Addresses that a browser may be sent to; the bad ones are named. */
  places(name: string): string[] {
    const items = this.list(name);
    const bad = items.filter((item) => !isPlace(item));
    if (bad.length > 0)
      this.#fault(name, `has no address without user and fragment at: ${bad.join(", ")}`);
    return items;
  }

  /** Networks in CIDR form; the bad ones are named and left out. */
  networks(name: string): string[] {
    const items = this.list(name);
    const bad = items.filter((item) => !isNetwork(item));
    if (bad.length > 0) this.#fault(name, `has no network in CIDR form at: ${bad.join(", ")}`);
    return items.filter((item) => !bad.includes(item));
  }

  /** `plain` makes a URL of a text that is more than one. */
  url(
    name: string,
    protocols: readonly string[],
    plain: (text: string) => string = (text) => text,
  ): string {
    const text = this.#get(name);
    if (text === undefined) this.#fault(name, `is required (${protocols.join("// or ")}//…)`);
    else if (!protocols.includes(protocolOf(plain(text)) ?? ""))
      this.#fault(name, `must be a URL with ${protocols.join("// or ")}//`);
    return text ?? "";
  }

  redisUrl(name: string): string {
    const text = this.#get(name);
    if (text === undefined) this.#fault(name, "is required (redis://… or redis+sentinel://…)");
    else this.parsed(name, checkRedisUrl);
    return text ?? "";
  }

  /** `Name <address>`, or the address alone. */
  mailbox(name: string, fallback: string): Mailbox {
    const text = this.#get(name) ?? fallback;
    const [, title = "", address = text] = /^([^<>\p{Cc}]*)<([^<>]*)>$/u.exec(text) ?? [];
    if (!/^[^\s\p{C}<>()[\]\\,;:@"]+@[^\s\p{C}<>()[\]\\,;:@"]+$/u.test(address))
      this.#fault(name, "must be an address, such as ReviewRelay <no-reply@reviews.example>");
    return { name: title.trim().replace(/^"(.*)"$/, "$1"), address };
  }

  /** A default port may be written out or left out. */
  origin(name: string, fallback: string): string {
    const text = this.#get(name) ?? fallback;
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url !== undefined && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`)
      return url.origin;
    this.#fault(
      name,
      "must be an http or https origin without a path, such as https://reviews.example",
    );
    return text;
  }

  key(name: string): Uint8Array | undefined {
    const text = this.#get(name);
    const bytes = Buffer.from(text ?? "", "base64");
    if (text === undefined)
      this.#fault(name, "is required: 32 random bytes in base64 (openssl rand -base64 32)");
    else if (bytes.length !== MASTER_KEY_BYTES)
      this.#fault(name, "must be 32 bytes in base64 (openssl rand -base64 32)");
    return bytes;
  }

  /** An empty value counts as absent: that is how compose files and shells leave a setting out. */
  #get(name: string): string | undefined {
    const text = this.#env[name]?.trim();
    return text === "" ? undefined : text;
  }

  /** Values stay out of the message: several settings are secrets. */
  #fault(name: string, what: string): void {
    this.faults.push(`${name} ${what}.`);
  }
}

/** `postgres://user@one:5432,two:5432/name` names several hosts, of which a URL has one. */
function firstHost(text: string): string {
  return text.replace(/^([a-z]+:\/\/(?:[^/?]*@)?[^/?,]*)(?:,[^/?,]+)+/, "$1");
}

function protocolOf(text: string): string | undefined {
  return URL.canParse(text) ? new URL(text).protocol : undefined;
}

/** The web's schemes, and the private-use ones of apps, which have a dot (RFC 8252, 7.1). */
function isPlace(text: string): boolean {
  if (/[\s\\#@]|\p{Cc}/u.test(text) || !URL.canParse(text)) return false;
  const { protocol } = new URL(text);
  return protocol === "https:" || protocol === "http:" || protocol.includes(".");
}

function isNetwork(text: string): boolean {
  try {
    return parseNetworks(text).length === 1;
  } catch {
    return false;
  }
}
