import { version } from "../../package.json" with { type: "json" };
import { check } from "./check-command.ts";
import { COMMON, read, table, type Command } from "./command.ts";
import { EXIT, Failure, type CommandContext, usage } from "./context.ts";
import {
  deliveries,
  recover,
  redeliver,
  subscribe,
  trigger,
  webhooks,
} from "./delivery-commands.ts";
import { listen } from "./listen.ts";
import { login, logout } from "./sign-in-commands.ts";
import { verify } from "./verify-command.ts";

const COMMANDS: readonly Command[] = [
  login,
  logout,
  subscribe,
  webhooks,
  listen,
  trigger,
  check,
  deliveries,
  redeliver,
  recover,
  verify,
];

/** Runs the command that the arguments name and returns its exit status. */
export async function run(args: readonly string[], context: CommandContext): Promise<number> {
  try {
    const [name = "help", ...rest] = args;
    if (["help", "--help", "-h"].includes(name)) {
      context.out(rest[0] === undefined ? overview() : helpOf(find(rest[0])));
      return EXIT.ok;
    }
    if (name === "--version") {
      context.out(`reviewrelay ${version}`);
      return EXIT.ok;
    }
    const command = find(name);
    const given = read(command, rest);
    if (given.is("help")) {
      context.out(helpOf(command));
      return EXIT.ok;
    }
    return await command.run(context, given);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    context.say(error.message);
    return error.status;
  }
}

function find(name: string): Command {
  const command = COMMANDS.find((one) => one.name === name);
  if (command === undefined)
    throw usage(`Unknown command ${name}. To list all commands, run: reviewrelay help`);
  return command;
}

function overview(): string {
  return `Receive, inspect and resend ReviewRelay webhooks from a terminal.

Usage: reviewrelay <command> [flags]

${indented(COMMANDS.map((one) => [one.name, one.summary]))}

Run reviewrelay help <command> for details, and reviewrelay --version for the version. Settings:

${indented([
  ["REVIEWRELAY_SERVER", "address of the server, such as https://reviews.example"],
  ["REVIEWRELAY_TOKEN", "access token, used instead of reviewrelay login"],
  ["WEBHOOK_SECRET", "secret that verifies signatures"],
])}

Exit status: 0 success, 1 rejected, invalid or outcome unknown, 64 usage error, 69 server unreachable, 77 not signed in.`;
}

function helpOf(command: Command): string {
  const flags = Object.entries({ ...command.flags, ...COMMON }).map(([name, { type, help }]) => [
    `--${name}${type === "string" ? " …" : ""}`,
    help,
  ]);
  const more = command.more === undefined ? "" : `\n\n${command.more}`;
  const line = `Usage: reviewrelay ${command.name} ${command.words}`.trimEnd();
  return `${line}\n\n${command.summary}${more}\n\n${indented(flags)}`;
}

function indented(rows: readonly (readonly string[])[]): string {
  return table(rows).replaceAll(/^/gm, "  ");
}
