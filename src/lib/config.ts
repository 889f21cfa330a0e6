import { readCertificates } from "./certificates.ts";
import { type EgressProxy, parseProxyUrl } from "./egress-proxy.ts";
import { type EgressPolicy, parseNetworks } from "./egress.ts";
import { LOG_LEVELS, type LogLevel } from "./log.ts";
import { type Env, type Mailbox, SettingsReader } from "./settings-reader.ts";

/**
 * The settings of one process, read once at its start. The defaults are meant for production; `scripts/start.ts` sets
 * those of the demo.
 */
export interface Config {
  readonly databaseUrl: string;
  /** The URL of the database with the user that owns the tables, for maintenance. Defaults to `DATABASE_URL`. */
  readonly maintenanceDatabaseUrl: string;
  /**
   * Maximum number of connections to PostgreSQL per process, in addition to those for leases, readiness and
   * maintenance.
   */
  readonly connections: Readonly<Record<"api" | "writerPool" | "dispatcher", number>>;
  readonly redisUrl: string;
  readonly redisPrefix: string;
  /** The address of the mail server; if absent, mails stay queued. */
  readonly smtpUrl: string | undefined;
  readonly mailFrom: Mailbox;
  /** Whether users are notified by mail about new devices, owners and tokens, and about changed webhooks. */
  readonly securityMails: boolean;
  /** Whether users of the platform itself need a second factor (contract 4.27). */
  readonly operatorsRequireSecondFactor: boolean;
  /** Whether codes for a signup are mailed, which only a platform with a signup wizard needs (contract 4.14). */
  readonly signupCodes: boolean;
  readonly port: number;
  readonly host: string;
  /** `{server_root}` of the specification, without a trailing slash. */
  readonly serverRoot: string;
  readonly metricsPort: number | undefined;
  readonly metricsHost: string;
  /**
   * Time in ms for which a process still accepts requests after the signal to stop, while `/readyz` reports `draining`.
   */
  readonly drainDelayMs: number;
  readonly retryDelaysMs: readonly number[];
  readonly batchHourMs: number;
  readonly lockScheduleS: readonly number[];
  readonly accessTokenTtlS: number;
  readonly refreshTokenTtlS: number;
  readonly refreshLeewayS: number;
  /** Number of days after the sign-in during which a client can refresh its tokens; null means no limit. */
  readonly refreshMaxDays: number | null;
  /** The absolute and the idle limit of a session of the product's own pages; null means no limit. */
  readonly sessionLimits: {
    readonly maxHours: number | null;
    readonly idleMinutes: number | null;
  };
  readonly otpTtlS: number;
  readonly otpCooldownS: number;
  readonly deliveryTimeoutMs: number;
  readonly retentionDays: number;
  /** Number of days between the request to delete a company and the deletion of all its data. */
  readonly deletionWaitDays: number;
  /** Retention in days of the audit log, and of sign-ins without live tokens; 0 keeps them forever. */
  readonly auditRetentionDays: number;
  readonly signInRetentionDays: number;
  /** Retention in days of history rows that deliveries no longer need; 0 keeps them forever. */
  readonly historyRetentionDays: number;
  readonly rateLimits: boolean;
  /** Rate limits of API requests: requests per minute and the largest burst (contract 2.9). */
  readonly rateLimit: Readonly<
    Record<"user" | "ip" | "signIn", { readonly perMinute: number; readonly burst: number }>
  >;
  readonly trustedProxies: readonly string[];
  /** Origins of browser apps that may use the whole API, not only the routes that are open to any origin. */
  readonly corsOrigins: readonly string[];
  /** The contacts in `/.well-known/security.txt`; undefined if `SECURITY_CONTACT` is not set. */
  readonly securityContacts: readonly string[] | undefined;
  /** Origins or complete URLs to which a browser may return after single sign-on, in addition to the dashboard. */
  readonly ssoReturnTo: readonly string[];
  /** Addresses to which webhooks may be sent: `WEBHOOK_ALLOW_HTTP`, `WEBHOOK_ALLOWED_NETWORKS`. */
  readonly egress: EgressPolicy;
  /** PEM certificates of `WEBHOOK_CA_FILE`, trusted for receivers in addition to the system's. */
  readonly webhookCa: readonly string[];
  /**
   * The outbound proxy for deliveries (`WEBHOOK_PROXY_URL`); without it, the dispatcher connects directly to receivers.
   */
  readonly webhookProxy: EgressProxy | undefined;
  readonly masterKey: Uint8Array;
  readonly masterKeyPrevious: Uint8Array | undefined;
  readonly logLevel: LogLevel;
  /** Whether each API request is logged. */
  readonly accessLog: boolean;
  /** The OTLP endpoint (over HTTP), and the share of events that are traced; if absent, nothing is traced. */
  readonly traces: { readonly url: string; readonly share: number } | undefined;
  /**
   * The process id of the supervisor, set by the supervisor itself. This process stops when the supervisor has ended.
   */
  readonly parentPid: number | undefined;
}

/**
 * Exit status for invalid settings (EX_CONFIG of sysexits.h), which tells a supervisor that a restart does not help.
 */
export const EXIT_CONFIG = 78;

/** Reports all errors of the settings, one per line. */
export class ConfigError extends Error {
  readonly errors: readonly string[];
  constructor(errors: readonly string[]) {
    super(errors.join("\n"));
    this.name = "ConfigError";
    this.errors = errors;
  }
}

const DAY_S = 86_400;

/** Times that the contract fixes (4.8, 4.14). They are part of the configuration so that tests can replace them. */
const FIXED_TIMES = {
  lockScheduleS: [60, 120, 240, 480, 900],
  otpTtlS: 600,
  otpCooldownS: 60,
};

/** Settings of earlier versions, which are not read any more. A process that still has one logs a warning. */
const REMOVED_SETTINGS = [
  "LOCK_SCHEDULE_S",
  "OTP_TTL_S",
  "OTP_COOLDOWN_S",
  "RATE_LIMIT_TOKEN_BURST",
  "RATE_LIMIT_IP_BURST",
  "RATE_LIMIT_SIGN_IN_BURST",
  "SECURITY_POLICY_URL",
  "SLOW_STATEMENT_MS",
];

/** A round of 4 attempts has 3 delays (contract 7.7). */
const RETRY_DELAYS = 3;

/** Reads and validates every setting. Throws a ConfigError that lists all errors. */
export function readConfig(env: Env = process.env): Config {
  const read = new SettingsReader(env);
  const host = read.host("HOST", "127.0.0.1");
  const port = read.integer("PORT", 3000, [1, 65_535]);
  const config: Config = {
    ...databasesOf(read),
    connections: connectionsOf(read),
    redisUrl: read.redisUrl("REDIS_URL"),
    redisPrefix: read.text("REDIS_PREFIX", "rr:"),
    smtpUrl: read.optional("SMTP_URL", () => read.url("SMTP_URL", ["smtp:", "smtps:"])),
    mailFrom: read.mailbox("MAIL_FROM", "ReviewRelay <no-reply@localhost>"),
    signupCodes: read.choice("SIGNUP_CODES", "off", ["on", "off"]) === "on",
    securityMails: read.choice("SECURITY_MAILS", "off", ["on", "off"]) === "on",
    operatorsRequireSecondFactor:
      read.choice("OPERATORS_REQUIRE_SECOND_FACTOR", "off", ["on", "off"]) === "on",
    port,
    host,
    serverRoot: read.origin(
      "SERVER_ROOT",
      `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    ),
    metricsPort: read.optional("METRICS_PORT", () => read.integer("METRICS_PORT", 0, [1, 65_535])),
    metricsHost: read.host("METRICS_HOST", "127.0.0.1"),
    drainDelayMs: read.integer("DRAIN_DELAY_MS", 5_000, [0, 60_000]),
    retryDelaysMs: read.integers("RETRY_DELAYS_MS", "60000,300000,1800000", RETRY_DELAYS),
    batchHourMs: read.integer("BATCH_HOUR_MS", 3_600_000, [1, 3_600_000]),
    ...FIXED_TIMES,
    accessTokenTtlS: read.integer("ACCESS_TOKEN_TTL_S", DAY_S, [1, 30 * DAY_S]),
    refreshTokenTtlS: read.integer("REFRESH_TOKEN_TTL_S", 30 * DAY_S, [1, 366 * DAY_S]),
    refreshLeewayS: read.integer("REFRESH_LEEWAY_S", 10, [0, 300]),
    refreshMaxDays: limitOf(read, "REFRESH_MAX_DAYS", [1, 3_650]),
    sessionLimits: sessionLimitsOf(read),
    deliveryTimeoutMs: read.integer("DELIVERY_TIMEOUT_MS", 15_000, [50, 60_000]),
    ...retentionOf(read),
    rateLimits: read.choice("RATE_LIMITS", "on", ["on", "off"]) === "on",
    rateLimit: rateLimitOf(read),
    trustedProxies: read.networks("TRUSTED_PROXIES"),
    corsOrigins: read.origins("CORS_ORIGINS"),
    securityContacts: read.parsed("SECURITY_CONTACT", contactsOf),
    ssoReturnTo: read.returnAddresses("SSO_RETURN_TO"),
    egress: {
      allowHttp: read.choice("WEBHOOK_ALLOW_HTTP", "0", ["0", "1"]) === "1",
      allowedNetworks: read.networks("WEBHOOK_ALLOWED_NETWORKS").flatMap(parseNetworks),
    },
    webhookCa: read.parsed("WEBHOOK_CA_FILE", readCertificates) ?? [],
    webhookProxy: read.parsed("WEBHOOK_PROXY_URL", parseProxyUrl),
    masterKey: read.key("MASTER_KEY") ?? new Uint8Array(),
    masterKeyPrevious: read.optional("MASTER_KEY_PREVIOUS", () => read.key("MASTER_KEY_PREVIOUS")),
    accessLog: read.choice("ACCESS_LOG", "on", ["on", "off"]) === "on",
    traces: tracesOf(read),
    logLevel: read.choice("LOG_LEVEL", "info", LOG_LEVELS),
    parentPid: read.optional("PARENT_PID", () => read.integer("PARENT_PID", 1, [1, 2 ** 31])),
  };
  if (read.errors.length > 0) throw new ConfigError(read.errors);
  return Object.freeze(config);
}

/** Returns the variables that set a removed setting. */
export function removedSettings(env: Env = process.env): string[] {
  return REMOVED_SETTINGS.flatMap((name) => [name, `${name}_FILE`]).filter((name) =>
    env[name]?.trim(),
  );
}

/** Reads only the URLs of the database, for programs that need no other setting. Throws a ConfigError. */
export function readDatabases(env: Env = process.env) {
  const read = new SettingsReader(env);
  const databases = databasesOf(read);
  if (read.errors.length > 0) throw new ConfigError(read.errors);
  return databases;
}

function databaseUrlOf(read: SettingsReader, name: string): string {
  const url = read.url(name, ["postgres:", "postgresql:"], firstHost);
  read.parsed(name, checkDatabaseTls);
  return url;
}

const SSL_MODES = ["disable", "prefer", "require", "verify-full"];

/** Checks the TLS parameters of the URL (db/client.ts). Throws with a reason that contains no secret. */
function checkDatabaseTls(text: string): void {
  const given = URL.parse(firstHost(text))?.searchParams;
  const [mode = "disable", ca] = [given?.get("sslmode") ?? undefined, given?.get("sslrootcert")];
  if (!SSL_MODES.includes(mode)) throw new Error(`must have an sslmode of ${SSL_MODES.join(", ")}`);
  if (ca == null) return;
  if (mode !== "verify-full") throw new Error("has sslrootcert, which needs sslmode=verify-full");
  try {
    if (ca !== "system") readCertificates(ca);
  } catch (error) {
    throw new Error(`has an sslrootcert that ${error instanceof Error ? error.message : ""}`, {
      cause: error,
    });
  }
}

function databasesOf(read: SettingsReader) {
  const databaseUrl = databaseUrlOf(read, "DATABASE_URL");
  const owner = "MAINTENANCE_DATABASE_URL";
  const maintenanceDatabaseUrl =
    read.optional(owner, () => databaseUrlOf(read, owner)) ?? databaseUrl;
  return { databaseUrl, maintenanceDatabaseUrl };
}

function connectionsOf(read: SettingsReader): Config["connections"] {
  return {
    api: read.integer("API_CONNECTIONS", 8, [1, 1_000]),
    writerPool: read.integer("INTAKE_CONNECTIONS", 6, [2, 1_000]),
    dispatcher: read.integer("DISPATCHER_CONNECTIONS", 4, [1, 1_000]),
  };
}

/**
 * Splits a list of contact URIs for vulnerability reports. Throws with a reason if one of them is not a valid contact
 * (RFC 9116).
 */
function contactsOf(text: string): string[] {
  const uris = text.split(",").map((one) => URL.parse(one.trim()));
  return uris.map((uri) => {
    if (uri === null || !/^(?:mailto:[^@\s]+@[^@\s]+|https:\/\/\S+|tel:\S+)$/.test(uri.href))
      throw new Error("must be addresses with mailto:, https:// or tel:, separated by commas");
    // `href` cannot contain a line break. A line break in the given text would add a field to the file.
    return uri.href;
  });
}

/**
 * Reads the session limits. The idle limit is at least 5 minutes, because the last use is stored only once a minute.
 */
function sessionLimitsOf(read: SettingsReader): Config["sessionLimits"] {
  return {
    maxHours: limitOf(read, "SESSION_MAX_HOURS", [1, 720]),
    idleMinutes: limitOf(read, "SESSION_IDLE_MINUTES", [5, 1_440]),
  };
}

/** Reads a limit that is disabled by default. */
function limitOf(
  read: SettingsReader,
  name: string,
  bounds: readonly [number, number],
): number | null {
  return read.optional(name, () => read.integer(name, 0, bounds)) ?? null;
}

function rateLimitOf(read: SettingsReader): Config["rateLimit"] {
  const rate = (name: string, fallback: number) => read.integer(name, fallback, [1, 1_000_000]);
  const user = rate("RATE_LIMIT_TOKEN_PER_MINUTE", 600);
  const ip = rate("RATE_LIMIT_IP_PER_MINUTE", 1_200);
  const signIn = rate("RATE_LIMIT_SIGN_IN_PER_MINUTE", 300);
  return {
    user: { perMinute: user, burst: Math.ceil(user / 2) },
    ip: { perMinute: ip, burst: Math.ceil(ip / 2) },
    signIn: { perMinute: signIn, burst: signIn },
  };
}

function retentionOf(read: SettingsReader) {
  const retentionDays = read.integer("RETENTION_DAYS", 30, [1, 3_650]);
  const historyRetentionDays = read.integer("HISTORY_RETENTION_DAYS", 0, [0, 36_500]);
  // The history must be kept longer than the deliveries, because a recovery reads the history of the whole retention
  // time of deliveries.
  if (historyRetentionDays > 0 && historyRetentionDays <= retentionDays)
    read.errors.push("HISTORY_RETENTION_DAYS must be 0 or more than RETENTION_DAYS");
  return {
    retentionDays,
    historyRetentionDays,
    deletionWaitDays: read.integer("DELETION_WAIT_DAYS", 30, [1, 365]),
    auditRetentionDays: read.integer("AUDIT_RETENTION_DAYS", 0, [0, 36_500]),
    signInRetentionDays: read.integer("SIGN_IN_RETENTION_DAYS", 0, [0, 36_500]),
  };
}

/** Reads the settings of tracing, whose names and meanings are those of the OpenTelemetry specification. */
function tracesOf(read: SettingsReader): Config["traces"] {
  const share = read.fraction("OTEL_TRACES_SAMPLER_ARG", 1);
  const base = read.optional("OTEL_EXPORTER_OTLP_ENDPOINT", () =>
    read.url("OTEL_EXPORTER_OTLP_ENDPOINT", ["http:", "https:"]),
  );
  return base === undefined ? undefined : { url: `${base.replace(/\/+$/, "")}/v1/traces`, share };
}

/**
 * Removes all but the first host from `postgres://user@one:5432,two:5432/name`, because a URL can contain only one
 * host.
 */
function firstHost(text: string): string {
  return text.replace(/^([a-z]+:\/\/(?:[^/?]*@)?[^/?,]*)(?:,[^/?,]+)+/, "$1");
}
