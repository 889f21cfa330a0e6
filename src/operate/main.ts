// The operator's command line: `bun run setup` and its like in a checkout, and all of the executable `reviewrelay-server`.
// It statically imports only built-ins, because a fresh clone has no dependencies installed.
import { COMMIT, VERSION } from "../lib/version.ts";
import { requireInstalled } from "./installed.ts";

interface Command {
  readonly says: string;
  /** Imports the module of the command, which runs it. */
  readonly run: () => Promise<unknown>;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  api: {
    says: "the HTTP API with the dashboard and the guides",
    run: () => import("../main.ts"),
  },
  dispatcher: {
    says: "delivers webhooks, mails and alerts",
    run: () => import("../../dispatcher/main.ts"),
  },
  all: {
    says: "an API and a dispatcher, each in a process of its own",
    run: () => import("./all.ts"),
  },
  migrate: {
    says: "brings the database to the schema of this version",
    run: async () => (await import("./setup/migrate.ts")).migrateDatabase(),
  },
  setup: {
    says: "prepares an empty database, and shows the first sign-in",
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
  import: { says: "imports a platform's own data", run: () => import("./import.ts") },
  export: { says: "writes the data to a file", run: () => import("./export.ts") },
  erase: { says: "erases a person", run: () => import("./erase.ts") },
  health: { says: "succeeds if the process of this container lives", run: checkHealth },
};
/** EX_USAGE of sysexits.h. */
const EXIT_USAGE = 64;

const USAGE = [
  "Usage: reviewrelay-server <command> [arguments]",
  "",
  ...Object.entries(COMMANDS).map(([name, { says }]) => `  ${name.padEnd(12)}${says}`),
  "",
  "`reviewrelay-server --version` prints the version, the commit and the schema. Settings are environment variables, and",
  "the commands explain their arguments with --help.",
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
  console.error(`There is no command ${name}.\n\n${USAGE}`);
  process.exitCode = EXIT_USAGE;
}

async function exitWith(main: (args: readonly string[]) => Promise<number>): Promise<void> {
  process.exitCode = await main(process.argv.slice(2));
}

/** Sets the exit status for the health check of a container, whose image has no other program. */
async function checkHealth(): Promise<void> {
  const url = `http://127.0.0.1:${process.env["METRICS_PORT"] ?? ""}/healthz`;
  const answer = await fetch(url).catch(() => undefined);
  if (answer?.ok !== true) process.exitCode = 1;
}
