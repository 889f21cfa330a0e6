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
