// The operator's command line: commands such as `bun run setup` in a checkout, and the executable `reviewrelay-server`.
// It statically imports only built-in modules and files without dependencies, because a fresh clone has no dependencies
// installed.
import { COMMIT, VERSION } from "../lib/version.ts";
import { requireInstalled } from "./installed.ts";

interface Command {
  readonly says: string;
  /** Imports the module of the command, which runs it. */
  readonly run: () => Promise<unknown>;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  api: {
    says: "runs the HTTP API with the dashboard and the guides",
    run: () => import("../main.ts"),
  },
  dispatcher: {
    says: "runs a dispatcher, which delivers webhooks, mails and alerts",
    run: () => import("../../dispatcher/main.ts"),
  },
  all: {
    says: "runs an API and a dispatcher, each in a separate process",
    run: () => import("./all.ts"),
  },
  migrate: {
    says: "migrates the database to the schema of this version",
    run: async () => (await import("./setup/migrate.ts")).migrateDatabase(),
  },
  setup: {
    says: "prepares an empty database and shows the link for the first sign-in",
    run: async () => exitWith((await import("./setup/setup.ts")).main),
  },
  doctor: {
    says: "checks settings, stores and network, and suggests remedies",
    run: async () => exitWith((await import("./doctor/doctor.ts")).main),
  },
  keys: {
    says: "lists and rotates the signing keys and the master key",
    run: () => import("./keys.ts"),
  },
  import: { says: "imports data from files of JSON lines", run: () => import("./import.ts") },
  export: { says: "exports data to a file of JSON lines", run: () => import("./export.ts") },
  erase: { says: "erases the data of a person", run: () => import("./erase.ts") },
  health: { says: "exits with 0 if the process of this container is alive", run: checkHealth },
};
/** Exit status for wrong arguments (EX_USAGE of sysexits.h). */
const EXIT_USAGE = 64;

const USAGE = [
  "Usage: reviewrelay-server <command> [arguments]",
  "",
  ...Object.entries(COMMANDS).map(([name, { says }]) => `  ${name.padEnd(12)}${says}`),
  "",
  "`reviewrelay-server --version` prints the version, the commit and the schema. Settings are environment",
  "variables. Add --help to a command to see its arguments.",
].join("\n");

const [name = ""] = process.argv.splice(2, 1);
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;

if (command !== undefined) {
  requireInstalled();
  await command.run();
} else if (name === "--version") {
  requireInstalled();
  const { schemaVersion } = await import("../../db/migrate.ts");
  console.log(`reviewrelay-server ${VERSION}, commit ${COMMIT}, schema ${schemaVersion()}`);
} else if (["", "--help", "-h", "help"].includes(name)) {
  console.log(USAGE);
} else {
  console.error(`Unknown command ${name}.\n\n${USAGE}`);
  process.exitCode = EXIT_USAGE;
}

async function exitWith(main: (args: readonly string[]) => Promise<number>): Promise<void> {
  process.exitCode = await main(process.argv.slice(2));
}

/**
 * Sets the exit status to 1 if the running service is not healthy. A container uses this command as its health check,
 * because the image contains no other program.
 */
async function checkHealth(): Promise<void> {
  const url = `http://127.0.0.1:${process.env["METRICS_PORT"] ?? ""}/healthz`;
  const answer = await fetch(url).catch(() => undefined);
  if (answer?.ok !== true) process.exitCode = 1;
}
