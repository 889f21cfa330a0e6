// Reads the settings of the start command. All other settings are passed to the parts unchanged. They are validated
// here by the parts' rules, so that every error is reported before anything starts.
import { join, resolve } from "node:path";

import { ConfigError, readConfig } from "../../src/lib/config.ts";
import { settingOf } from "../../src/lib/settings-reader.ts";
import { ROOT } from "../install/install.ts";
import { StartError } from "./start-error.ts";

type Env = Readonly<Record<string, string | undefined>>;

export interface Settings {
  dataDir: string;
  dispatchers: number;
  host: string;
  port: number;
  serverRoot: string;
  /** The URL of the API on this machine, independent of its public name. */
  localRoot: string;
  metricsPort: number | undefined;
  /**
   * The settings that the user has set. Missing stores are replaced by embedded ones, and a missing key is generated.
   */
  given: {
    databaseUrl: string | undefined;
    maintenanceDatabaseUrl: string | undefined;
    redisUrl: string | undefined;
    smtpUrl: string | undefined;
    masterKey: string | undefined;
  };
  /** The environment of the parts. The user's variables override the demo's defaults. */
  env: Record<string, string>;
}

const MOST_DISPATCHERS = 16;
const LAST_PORT = 65_535;
// The demo allows receivers on this machine, which production rejects, and mails codes for a signup.
const DEMO_DEFAULTS = {
  WEBHOOK_ALLOW_HTTP: "1",
  WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8,::1/128",
  SIGNUP_CODES: "on",
};
// Placeholders for the validation, because the real values are not known yet.
const PLACEHOLDERS = {
  DATABASE_URL: "postgres://embedded",
  REDIS_URL: "redis://embedded",
  MASTER_KEY: Buffer.alloc(32).toString("base64"),
};

// Settings that this command itself needs and that may be given as files. The parts read the files of all other
// settings.
const OWN_SETTINGS = [
  ...Object.keys(PLACEHOLDERS),
  "MAINTENANCE_DATABASE_URL",
  "SMTP_URL",
  "SERVER_ROOT",
];

export function readSettings(environment: Env): Settings {
  // An empty value counts as absent, as it does in the parts.
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && value.trim() !== "") given[name] = value.trim();
  }
  const errors: string[] = [];
  for (const name of OWN_SETTINGS) readFromFile(given, name, errors);
  const env = { ...DEMO_DEFAULTS, ...given };
  const dispatchers = Number(given["DISPATCHERS"] ?? "1");
  if (!Number.isInteger(dispatchers) || dispatchers < 1 || dispatchers > MOST_DISPATCHERS) {
    errors.push(`DISPATCHERS must be a whole number from 1 to ${MOST_DISPATCHERS}.`);
  }
  const config = check({ ...PLACEHOLDERS, ...env }, errors);
  // Each process has a separate metrics port: the API uses METRICS_PORT, and the dispatchers the following ports.
  const metrics = config?.metricsPort ?? 0;
  const clash =
    config !== undefined && config.port >= metrics && config.port <= metrics + dispatchers;
  if (metrics > 0 && (clash || metrics + dispatchers > LAST_PORT)) {
    errors.push(
      `METRICS_PORT and the ${dispatchers} ports after it must differ from PORT and end at ${LAST_PORT}.`,
    );
  }
  if (config === undefined || errors.length > 0) {
    throw new StartError(
      ...errors,
      "Correct these settings and start again; docs/operations/settings.md lists them all.",
    );
  }
  // The origin of a URL omits port 80.
  const localRoot = new URL(`http://${localName(config.host)}:${config.port}`).origin;
  return {
    dataDir: given["DATA_DIR"] === undefined ? join(ROOT, ".data") : resolve(given["DATA_DIR"]),
    dispatchers,
    host: config.host,
    port: config.port,
    serverRoot: given["SERVER_ROOT"] === undefined ? localRoot : config.serverRoot,
    localRoot,
    metricsPort: config.metricsPort,
    given: {
      databaseUrl: given["DATABASE_URL"],
      maintenanceDatabaseUrl: given["MAINTENANCE_DATABASE_URL"],
      redisUrl: given["REDIS_URL"],
      smtpUrl: given["SMTP_URL"],
      masterKey: given["MASTER_KEY"],
    },
    env,
  };
}

/** Replaces the setting by the content of the file that `NAME_FILE` names. */
function readFromFile(given: Record<string, string>, name: string, errors: string[]): void {
  const file = `${name}_FILE`;
  if (given[file] === undefined) return;
  try {
    const text = settingOf(given, name);
    if (text !== undefined) given[name] = text;
  } catch (error) {
    errors.push(`${name} ${error instanceof Error ? error.message : "cannot be read"}.`);
  }
  delete given[file];
}

function check(env: Env, errors: string[]) {
  try {
    return readConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    errors.push(...error.errors);
    return undefined;
  }
}

/** Returns an address for connections. An address to listen on, such as 0.0.0.0, may not be usable for that. */
function localName(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
