import type { Clock } from "../lib/clock.ts";

/** All that a command has of the machine, so that nothing else asks for it. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Standard output: the result. */
  readonly out: (text: string) => void;
  /** Standard error: what happens meanwhile. */
  readonly say: (text: string) => void;
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Aborts with Ctrl-C. */
  readonly signal: AbortSignal;
}

/** An empty variable counts as absent: that is how shells and compose files leave one out. */
export function withoutEmpty(env: Surroundings["env"]): Surroundings["env"] {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
}

export async function readAll(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Exit statuses; those above 1 are of sysexits.h. */
export const EXIT = { ok: 0, failed: 1, usage: 64, unavailable: 69, signedOut: 77 } as const;

/** Ends the command with a sentence for people and a status for scripts. */
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

/** The id as it is, if it is one. */
export function ulid(text: string): string {
  if (/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text)) return text;
  throw usage(`${text} is no id: it has 26 characters, such as 01JWNB9PR0ZV8X2D3F4G5H6J00.`);
}
