import { parseArgs } from "node:util";

import { addMs, isoInstant, parseInstant } from "../lib/clock.ts";
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
  /** The arguments after the command's name, as the usage line shows them. */
  readonly words: string;
  readonly summary: string;
  /** Further help text, printed below the summary. */
  readonly more?: string;
  readonly flags: Flags;
  /** The smallest and largest number of arguments that the command accepts. */
  readonly wordCount: readonly [least: number, most: number];
  run(context: CommandContext, given: ParsedArgs): Promise<number>;
}

export const COMMON = {
  server: { type: "string", help: "address of the server; default: REVIEWRELAY_SERVER" },
  json: { type: "boolean", help: "print the result as JSON" },
  help: { type: "boolean", help: "show this help" },
} as const satisfies Flags;

export const WEBHOOK = {
  webhook: {
    type: "string",
    help: "id of the subscription; default: your only one, or the immediate one",
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

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

export const AGO = "2026-06-01T12:00:00Z, or 30s, 90m, 2h, 7d ago";

/**
 * Converts the value of a flag to an instant. An ISO instant is returned unchanged; an age such as `2h` is subtracted
 * from the current time. Throws for other text.
 */
export function instant(
  { clock }: CommandContext,
  given: ParsedArgs,
  flag: "since" | "until",
): string | undefined {
  const text = given.text(flag);
  const [, count, unit = ""] = /^(\d{1,4})([smhd])$/.exec(text ?? "") ?? [];
  if (count !== undefined)
    return isoInstant(addMs(clock.now(), -Number(count) * (UNIT_MS[unit] ?? 0)));
  if (text !== undefined && parseInstant(text) === undefined)
    throw usage(`--${flag} ${text} is not a valid time. Use ${AGO}.`);
  return text;
}
