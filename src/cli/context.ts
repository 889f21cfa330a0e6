import type { Clock } from "../lib/clock.ts";

/** The environment of a command: every input and output that it uses, so that tests can replace them. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Writes to standard output, for results. */
  readonly out: (text: string) => void;
  /** Writes to standard error, for progress and errors. */
  readonly say: (text: string) => void;
  readonly stdin: AsyncIterable<Uint8Array>;
  /** The signal that aborts on Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Removes environment variables with an empty value, because shells and compose files omit a setting in this way. */
export function withoutEmpty(env: CommandContext["env"]): CommandContext["env"] {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
}

/**
 * Escapes control characters and characters that reverse the direction of text, so that a name from the server cannot
 * change the output of the terminal. Line breaks and tabs are kept.
 */
export function printable(text: string): string {
  return text.replaceAll(
    /[^\P{Cc}\t\n]|[\u2028-\u202e\u2066-\u2069]/gu,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export async function readAll(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Exit statuses of the program. Those above 1 come from sysexits.h. */
export const EXIT = { ok: 0, failed: 1, usage: 64, unavailable: 69, signedOut: 77 } as const;

/** An error that ends the command with a message for people and an exit status for scripts. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

export function usage(message: string): Failure {
  return new Failure(EXIT.usage, message);
}

/** Returns the text if it is a ULID; throws a usage failure otherwise. */
export function ulid(text: string): string {
  if (/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text)) return text;
  throw usage(
    `${text} is not a valid id. An id has 26 characters, such as 01JWNB9PR0ZV8X2D3F4G5H6J00.`,
  );
}
