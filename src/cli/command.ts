import { parseArgs } from "node:util";

import { type CommandContext, usage } from "./context.ts";
import { Server, serverOf } from "./server.ts";

export type Flags = Readonly<Record<string, { type: "string" | "boolean"; help: string }>>;

/** The parsed arguments of a command line. */
export interface ParsedArgs {
  readonly words: readonly string[];
  text(name: string): string | undefined;
  is(name: string): boolean;
  /**
   * Returns the integer value of a flag. Throws a usage failure for a value outside of the range and for text that is
   * not an integer.
   */
  number(name: string, range: readonly [number, number]): number | undefined;
}

export interface Command {
  readonly name: string;
  /** The operands after the command's name, as the usage line shows them. */
  readonly words: string;
  readonly summary: string;
  /** Further help text, printed below the summary. */
  readonly more?: string;
  readonly flags: Flags;
  /** The smallest and largest number of operands that the command accepts. */
  readonly wordCount: readonly [least: number, most: number];
  run(context: CommandContext, given: ParsedArgs): Promise<number>;
}

export const COMMON = {
  server: { type: "string", help: "the address of the server, or REVIEWRELAY_SERVER" },
  json: { type: "boolean", help: "print the result as JSON" },
  help: { type: "boolean", help: "show this text" },
} as const satisfies Flags;

export const WEBHOOK = {
  webhook: {
    type: "string",
    help: "the subscription's id; default: your only one, or the immediate one",
  },
} as const satisfies Flags;

export function read(command: Command, args: readonly string[]): ParsedArgs {
  const options = Object.fromEntries(
    Object.entries({ ...command.flags, ...COMMON }).map(([name, { type }]) => [name, { type }]),
  );
  const { values, positionals: words } = parse(args, options);
  const [least, most] = command.wordCount;
  if (!values["help"] && (words.length < least || words.length > most))
    throw usage(`Usage: reviewrelay ${command.name} ${command.words}`.trimEnd());
  const text = (name: string) => {
    const value = values[name];
    return typeof value === "string" ? value : undefined;
  };
  return {
    words,
    text,
    is: (name) => values[name] === true,
    number(name, [min, max]) {
      const value = text(name);
      if (value === undefined) return undefined;
      if (/^\d{1,9}$/.test(value) && Number(value) >= min && Number(value) <= max)
        return Number(value);
      throw usage(`--${name} must be a whole number from ${min} to ${max}.`);
    },
  };
}

function parse(args: readonly string[], options: Record<string, { type: "string" | "boolean" }>) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw usage(error instanceof Error ? error.message : String(error));
  }
}

export function connect(context: CommandContext, given: ParsedArgs): Server {
  return new Server(context, serverOf(context.env, given.text("server")));
}

/** Prints the result of a command as text for people or, with `--json`, as JSON. */
export function show(
  context: CommandContext,
  given: ParsedArgs,
  result: unknown,
  text: string,
): void {
  context.out(given.is("json") ? JSON.stringify(result, null, 2) : text);
}

/** Formats rows as a text table; each column is as wide as its widest cell. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
