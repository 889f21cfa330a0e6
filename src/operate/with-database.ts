import { parseArgs, type ParseArgsConfig } from "node:util";

import { connect, type RawDb } from "../../db/client.ts";
import { driverError } from "../../db/driver.ts";
import { causeOf, rightsFault } from "../../db/errors.ts";
import { schemaError } from "../../db/migrate.ts";
import { groundFault } from "../../db/server.ts";
import { type Config, ConfigError, EXIT_CONFIG, readConfig } from "../lib/config.ts";
import { createSecretBox, type SecretBox } from "../lib/secrets.ts";

/** Exit status for wrong arguments (EX_USAGE of sysexits.h). */
const EXIT_USAGE = 64;

/** Error about arguments with which the command cannot run. */
export class UsageError extends Error {}

interface Command {
  /** The name of the command. The database connection of the command is named after it. */
  readonly name: string;
  readonly help: string;
  readonly options: NonNullable<ParseArgsConfig["options"]>;
}

interface ConnectedDeps {
  readonly db: RawDb;
  readonly box: SecretBox;
  readonly config: Config;
}

interface GivenArguments {
  readonly values: Readonly<Record<string, unknown>>;
  readonly positionals: readonly string[];
}

/**
 * Runs a command on the database of the settings, as the user that owns its tables. Sets the exit status that `work`
 * returns.
 */
export async function runWithDatabase(
  command: Command,
  work: (connected: ConnectedDeps, given: GivenArguments) => Promise<number>,
): Promise<void> {
  try {
    process.exitCode = await run(command, work);
  } catch (error) {
    const fault = rightsFault(error);
    const cause = fault === undefined ? causeOf(error) : new ConfigError([fault]);
    console.error(cause instanceof Error ? cause.message : cause);
    if (cause instanceof UsageError) console.error(`\n${command.help}`);
    process.exitCode = statusOf(cause);
  }
}

function statusOf(cause: unknown): number {
  if (cause instanceof UsageError) return EXIT_USAGE;
  return cause instanceof ConfigError ? EXIT_CONFIG : 1;
}

async function run(
  { name, help, options }: Command,
  work: (connected: ConnectedDeps, given: GivenArguments) => Promise<number>,
): Promise<number> {
  const given = readArguments(options);
  if (given.values["help"] === true) {
    console.log(help);
    return 0;
  }
  const fault = driverError();
  if (fault !== undefined) throw new ConfigError([fault]);
  const config = readConfig();
  const db = connect(config.maintenanceDatabaseUrl, { max: 1, name: `reviewrelay-${name}` });
  try {
    const lacking = (await groundFault(db)) ?? (await schemaError(db));
    if (lacking !== undefined) throw new ConfigError([lacking]);
    const box = createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious });
    return await work({ db, box, config }, given);
  } finally {
    await db.close();
  }
}

function readArguments(options: Command["options"]): GivenArguments {
  try {
    return parseArgs({
      options: { ...options, help: { type: "boolean", short: "h" } },
      allowPositionals: true,
      strict: true,
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}
