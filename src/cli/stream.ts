import { decodeTime } from "ulid";

import { parseInstant, type Clock } from "../lib/clock.ts";
import { EXIT, Failure } from "./surroundings.ts";
import { refusalOf, type Server } from "./server.ts";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
/** The server says something every two seconds; silence for longer is a connection that died. */
const SILENCE_MS = 15_000;
/** Ids of attempts that were taken: more than a stream repeats when it is resumed. */
const REMEMBERED = 200_000;

export interface SentAttempt {
  readonly id: string;
  readonly event: string;
  readonly event_id: string;
  readonly attempt: number;
  readonly started_at: string;
  readonly duration_ms: number;
  readonly request_headers: Readonly<Record<string, string | string[]>> | null;
  /** The exact text; null where what was sent cannot be proved any more. */
  readonly request_body: string | null;
}

interface Deps {
  readonly server: Server;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Hears what happens to the connection. */
  readonly tell: (text: string) => void;
}

/**
 * Every attempt of a subscription from now on, or from `after` on, each once; goes on where it was when the connection
 * ends. Ends with the signal; throws when the server refuses for good.
 */
export async function* followAttempts(
  deps: Deps,
  subscriptionId: string,
  after: string | undefined,
): AsyncGenerator<SentAttempt> {
  const { signal, clock, tell } = deps;
  const taken = new Set<string>();
  let last = after;
  let beganMs = after === undefined ? undefined : decodeTime(after);
  let waitMs = FIRST_WAIT_MS;
  while (!signal.aborted) {
    try {
      for await (const { id, event, data } of messages(deps, subscriptionId, last)) {
        waitMs = FIRST_WAIT_MS;
        last = id ?? last;
        beganMs ??= last === undefined ? undefined : decodeTime(last);
        if (event === "subscription") tell("Connected.");
        if (event !== "attempt" || id === undefined || taken.has(id)) continue;
        remember(taken, id);
        const attempt: SentAttempt = JSON.parse(data);
        if (endMs(attempt) >= (beganMs ?? 0)) yield attempt;
      }
    } catch (error) {
      if (error instanceof Failure && !isPassing(error)) throw error;
    }
    if (signal.aborted) return;
    tell(`The connection ended; the next try is in ${waitMs / 1_000} s.`);
    await clock.sleep(waitMs, signal);
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
  }
}

/** A resumed stream repeats the half minute before: what had ended when we began is not ours. */
function endMs({ started_at, duration_ms }: SentAttempt): number {
  return (parseInstant(started_at)?.getTime() ?? Infinity) + duration_ms;
}

/** What a server says that starts, stops or has too much to do. */
function isPassing({ status }: Failure): boolean {
  return status === EXIT.unavailable;
}

/** The oldest goes first: a set keeps the order of its values. */
function remember(taken: Set<string>, id: string): void {
  taken.add(id);
  if (taken.size <= REMEMBERED) return;
  const [oldest = ""] = taken;
  taken.delete(oldest);
}

interface Message {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
}

async function* messages(
  deps: Deps,
  subscriptionId: string,
  after: string | undefined,
): AsyncGenerator<Message> {
  const silence = new AbortController();
  const response = await deps.server.send(
    `/partner/webhooks/${subscriptionId}/stream?include=body`,
    {
      headers: {
        Accept: "text/event-stream",
        ...(after !== undefined && { "Last-Event-ID": after }),
      },
      signal: AbortSignal.any([deps.signal, silence.signal]),
    },
  );
  if (!response.ok || response.body === null) throw await refusalOf(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let rest = ""; ;) {
      const { done, value } = await beforeSilence(deps.clock, silence, () => reader.read());
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop() ?? "";
      yield* parts.map(messageOf);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

async function beforeSilence<T>(
  clock: Clock,
  silence: AbortController,
  read: () => Promise<T>,
): Promise<T> {
  const heard = new AbortController();
  void clock.sleep(SILENCE_MS, heard.signal).then(() => {
    if (!heard.signal.aborted) silence.abort();
  });
  return read().finally(() => heard.abort());
}

/** The server writes one line of data per message. */
function messageOf(part: string): Message {
  const field = (name: string) =>
    part
      .split("\n")
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  return { event: field("event") ?? "", data: field("data") ?? "", id: field("id") };
}
