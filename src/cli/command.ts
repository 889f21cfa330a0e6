import { parseArgs } from "node:util";

import { type Surroundings, usage } from "./surroundings.ts";
import { Server, serverOf } from "./server.ts";

export type Flags = Readonly<Record<string, { type: "string" | "boolean"; help: string }>>;

/** What was typed behind the name of a command. */
export interface Given {
  readonly words: readonly string[];
  text(name: string): string | undefined;
  is(name: string): boolean;
  /** A whole number between the two; throws for anything else. */
  number(name: string, range: readonly [number, number]): number | undefined;
}

export interface Command {
  readonly name: string;
  /** Behind the name, in the usage. */
  readonly words: string;
  readonly summary: string;
  /** What the summary leaves out. */
  readonly more?: string;
  readonly flags: Flags;
  /** How many words it takes. */
  readonly takes: readonly [least: number, most: number];
  run(around: Surroundings, given: Given): Promise<number>;
}

export const COMMON = {
  server: { type: "string", help: "the address of the server, or REVIEWRELAY_SERVER" },
  json: { type: "boolean", help: "the result as JSON" },
  help: { type: "boolean", help: "this text" },
} as const satisfies Flags;

export const WEBHOOK = {
  webhook: {
    type: "string",
    help: "the subscription's id; else the only one, or the immediate one",
  },
} as const satisfies Flags;

export function read(command: Command, args: readonly string[]): Given {
  const options = Object.fromEntries(
    Object.entries({ ...command.flags, ...COMMON }).map(([name, { type }]) => [name, { type }]),
  );
  const { values, positionals: words } = parse(args, options);
  const [least, most] = command.takes;
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

export function connect(around: Surroundings, given: Given): Server {
  return new Server(around, serverOf(around.env, given.text("server")));
}

/** The result: for people, or as JSON for programs. */
export function show(around: Surroundings, given: Given, result: unknown, text: string): void {
  around.out(given.is("json") ? JSON.stringify(result, null, 2) : text);
}

/** Rows under each other, each column as wide as its widest cell. */
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
