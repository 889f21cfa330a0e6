// Reads the start command's own settings. Everything else goes to the parts as it came, and is checked here by the
// parts' own rules, so that every fault is named before anything is started.
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
  /** Where this machine reaches the API, whatever its public name is. */
  localRoot: string;
  metricsPort: number | undefined;
  /** What the user gave; what is missing is embedded or generated. */
  given: {
    databaseUrl: string | undefined;
    redisUrl: string | undefined;
    smtpUrl: string | undefined;
    masterKey: string | undefined;
  };
  /** For the parts: the user's environment with the demo's defaults under it. */
  env: Record<string, string>;
}

const MOST_DISPATCHERS = 16;
const LAST_PORT = 65_535;
// Receivers on this machine are the point of a demo; production refuses both.
const DEMO_DEFAULTS = { WEBHOOK_ALLOW_HTTP: "1", WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8,::1/128" };
// Stand-ins for the check, because the real values are not known yet.
const STAND_INS = {
  DATABASE_URL: "postgres://embedded",
  REDIS_URL: "redis://embedded",
  MASTER_KEY: Buffer.alloc(32).toString("base64"),
};

// What is decided upon here, and may be given as a file; the parts read the files of all others.
const TAKEN_HERE = [...Object.keys(STAND_INS), "SMTP_URL", "SERVER_ROOT"];

export function readSettings(environment: Env): Settings {
  // An empty value counts as absent, as in the parts.
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && value.trim() !== "") given[name] = value.trim();
  }
  const errors: string[] = [];
  for (const name of TAKEN_HERE) readFromFile(given, name, errors);
  const env = { ...DEMO_DEFAULTS, ...given };
  const dispatchers = Number(given["DISPATCHERS"] ?? "1");
  if (!Number.isInteger(dispatchers) || dispatchers < 1 || dispatchers > MOST_DISPATCHERS) {
    errors.push(`DISPATCHERS must be a whole number from 1 to ${MOST_DISPATCHERS}.`);
  }
  const config = check({ ...STAND_INS, ...env }, errors);
  // Each process has metrics of its own: the API at METRICS_PORT, the dispatchers from the next one on.
  const metrics = config?.metricsPort ?? 0;
  const clash =
    config !== undefined && config.port >= metrics && config.port <= metrics + dispatchers;
  if (metrics > 0 && (clash || metrics + dispatchers > LAST_PORT)) {
    errors.push(
      `METRICS_PORT and the ${dispatchers} ports after it must be apart from PORT and end at ${LAST_PORT}.`,
    );
  }
  if (config === undefined || errors.length > 0) {
    throw new StartError(
      ...errors,
      "Correct these settings and start again; docs/operations/settings.md lists them all.",
    );
  }
  // The origin of a URL leaves out port 80.
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
      redisUrl: given["REDIS_URL"],
      smtpUrl: given["SMTP_URL"],
      masterKey: given["MASTER_KEY"],
    },
    env,
  };
}

/** Puts what `NAME_FILE` names in the place of the setting itself. */
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

/** An address to listen on is not always one to connect to. */
function localName(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
