import type { Static } from "@sinclair/typebox";
import { decodeTime } from "ulid";

import { parseInstant, type Clock } from "../lib/clock.ts";
import type { AttemptObject } from "../webhooks/delivery-model.ts";
import { EXIT, Failure } from "./context.ts";
import { failureOf, type Server } from "./server.ts";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
/** Time in ms without data after which a connection is considered dead. The server sends data every two seconds. */
const SILENCE_MS = 15_000;
/** Number of attempt ids that are remembered, so that repeated attempts of a resumed stream can be dropped. */
const REMEMBERED = 200_000;

export type SentAttempt = Static<typeof AttemptObject>;

interface Deps {
  readonly server: Server;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Reports to the user that the connection was opened or lost. */
  readonly report: (text: string) => void;
}

/**
 * Yields every delivery attempt of a subscription once, from now or from `after` on. When the connection ends, the
 * stream reconnects and resumes. It ends with the signal and throws on a permanent error.
 */
export async function* followAttempts(
  deps: Deps,
  subscriptionId: string,
  after: string | undefined,
): AsyncGenerator<SentAttempt> {
  const { signal, clock, report } = deps;
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
        if (event === "subscription") report("Connected.");
        if (event !== "attempt" || id === undefined || taken.has(id)) continue;
        remember(taken, id);
        const attempt: SentAttempt = JSON.parse(data);
        if (endMs(attempt) >= (beganMs ?? 0)) yield attempt;
      }
    } catch (error) {
      if (error instanceof Failure && !isTransient(error)) throw error;
    }
    if (signal.aborted) return;
    report(`The connection ended; the next try is in ${waitMs / 1_000} s.`);
    await clock.sleep(waitMs, signal);
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
  }
}

/**
 * Returns the time in ms at which a delivery attempt ended. A resumed stream repeats the last half minute, so
 * attempts that ended before the start are dropped.
 */
function endMs({ started_at, duration_ms }: SentAttempt): number {
  return (parseInstant(started_at)?.getTime() ?? Infinity) + duration_ms;
}

/** Returns whether the failure is temporary: the server is starting, stopping or overloaded. */
function isTransient({ status }: Failure): boolean {
  return status === EXIT.unavailable;
}

/** Adds an attempt id to the set and drops the oldest id at the limit; a set keeps insertion order. */
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
  if (!response.ok || response.body === null) throw await failureOf(response);
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
  const received = new AbortController();
  void clock.sleep(SILENCE_MS, received.signal).then(() => {
    if (!received.signal.aborted) silence.abort();
  });
  return read().finally(() => received.abort());
}

/** Parses one message of the event stream; the server writes one line of data per message. */
function messageOf(part: string): Message {
  const field = (name: string) =>
    part
      .split("\n")
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  return { event: field("event") ?? "", data: field("data") ?? "", id: field("id") };
}
