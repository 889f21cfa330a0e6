import type { Clock } from "../lib/clock.ts";
import { type Key, keyOf } from "../lib/kind-key.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { Problem } from "../lib/problem.ts";
import type { Principal } from "./principal.ts";

/**
 * Limits of open event streams: per process (`keptForOperators` of these are reserved for operators), per partner with
 * its accounts, per user, per portal session, and for all portal sessions whose links one user created. Streams of
 * portal sessions and streams of users have separate limits per partner.
 */
export const STREAM_LIMITS = {
  perProcess: 200,
  keptForOperators: 10,
  perPartner: 50,
  perUser: 5,
  perPortalSession: 3,
  perPortalMaker: 50,
};
const RETRY_AFTER_S = 5;
/** Number of unread messages at which a client is disconnected. */
const UNREAD_LIMIT = 256;
/** Time in ms after which a stream ends if its TCP connection has taken no data. */
const STALL_MS = 15_000;
/**
 * **Probes.** A client that has stopped reading cannot be recognised while its TCP connection still takes messages: the
 * buffers of the kernel and of a proxy hold up to 12 MB, which a quiet stream does not fill in days. So when a limit is
 * reached, streams that count towards this limit are probed with comments of `PROBE_BYTES` in total.
 *
 * The comments fill the buffers of a client that does not read, and its stream ends after `STALL_MS`. A client that
 * reads receives all of them. The probe ends early if the TCP connection was full for `FULL_MS` and then took more data
 * `PROBE_REFILLS` times, because this shows that the client reads.
 */
const PROBE_BYTES = 16_777_216;
const FULL_MS = 20;
const PROBE_REFILLS = 3;
/**
 * Number of streams that are probed at a time. More would need much memory, because each probe may fill its buffers.
 */
const PROBED_AT_ONCE = 10;
/** Minimum time in ms until a stream is probed again. It doubles with each probe, from `first` to `longest`. */
const PROBE_AGAIN_MS = { first: 15_000, longest: 240_000 } as const;

export interface EventSink {
  /** Sends a message that `messageOf` has encoded. The same message may be sent to any number of streams. */
  send(message: Uint8Array): void;
  /**
   * Sends a comment, which clients ignore. The comment keeps proxies and servers from closing an idle TCP connection.
   */
  beat(): void;
  /** Resolves when the client has read all messages or has disconnected. */
  drained(): Promise<void>;
}

const encoder = new TextEncoder();
const BEAT_COMMENT = encoder.encode(": beat\n\n");
const PROBE_COMMENT = encoder.encode(`:${" ".repeat(65_533)}\n\n`);

/** Encodes a message of an event stream; `data` is sent as JSON. */
export function messageOf(event: string, data: unknown, id?: string): Uint8Array {
  const head = id === undefined ? "" : `id: ${id}\n`;
  return encoder.encode(`${head}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/**
 * Encodes an event id without a message, so that a client to which no events are sent can still resume from this id.
 */
export function bookmarkOf(id: string): Uint8Array {
  return encoder.encode(`id: ${id}\n\n`);
}

interface StreamsDeps {
  readonly log: Log;
  readonly clock: Clock;
  readonly stopping?: AbortSignal | undefined;
}

/** Opens the `text/event-stream` responses of this process and enforces their limits. */
export class EventStreams {
  readonly #deps: StreamsDeps;
  readonly #limits: typeof STREAM_LIMITS;
  readonly #open = new Set<OpenStream>();

  constructor(deps: StreamsDeps, limits = STREAM_LIMITS) {
    this.#deps = deps;
    this.#limits = limits;
  }

  /**
   * Returns a response whose event stream stays open while `produce` runs. The signal of `produce` aborts when the
   * client disconnects or does not read, or when the process stops.
   */
  open(viewer: Viewer, produce: (sink: EventSink, signal: AbortSignal) => Promise<void>): Response {
    const bounds = boundsOf(viewer, this.#limits);
    this.#admit(bounds);
    const disconnected = new AbortController();
    const signals = [disconnected.signal, ...(this.#deps.stopping ? [this.#deps.stopping] : [])];
    const keys = bounds.map(({ key }) => key);
    const stream = new OpenStream(keys, this.#deps.clock, () => disconnected.abort());
    this.#open.add(stream);
    for (const bound of bounds) if (this.#isFull(bound)) this.#probe(bound);
    disconnected.signal.addEventListener("abort", () => stream.release());
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        stream.controller = controller;
        void produce(stream, AbortSignal.any(signals))
          .catch((error: unknown) => {
            // An error after the client has disconnected is not logged, because the stream has not failed.
            if (!disconnected.signal.aborted)
              this.#deps.log.warn("stream.failed", errorFields(error));
          })
          .finally(() => {
            this.#open.delete(stream);
            stream.close();
          });
      },
      pull: () => stream.taken(),
      cancel: () => disconnected.abort(),
    });
    // The header X-Accel-Buffering keeps nginx from collecting messages before it forwards them.
    return new Response(body, {
      headers: { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" },
    });
  }

  #admit(bounds: readonly Bound[]): void {
    const full = bounds.find((bound) => this.#isFull(bound));
    if (full === undefined) return;
    this.#probe(full);
    const headers = { "Retry-After": String(RETRY_AFTER_S) };
    if (full.key === PROCESS_KEY) throw new Problem("overloaded", { headers });
    throw new Problem("rate_limited", { headers, message: "Too many streams are open." });
  }

  #isFull({ key, limit }: Bound): boolean {
    return this.#under(key).length >= limit;
  }

  #under(key: StreamKey): OpenStream[] {
    return [...this.#open].filter(({ keys }) => keys.includes(key));
  }

  /** Probes streams under a bound that is full, beginning with those that were not probed for the longest time. */
  #probe({ key }: Bound): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const due = this.#under(key).filter(({ probeFromMs }) => probeFromMs <= nowMs);
    const oldest = due.toSorted((a, b) => a.probeFromMs - b.probeFromMs);
    for (const stream of oldest.slice(0, PROBED_AT_ONCE)) stream.probe();
  }
}

type Viewer = Pick<Principal, "userId" | "partnerId" | "impersonatorId" | "tokenKind" | "jti">;

/** The maximum number of open streams that are counted under one key. */
interface Bound {
  readonly key: StreamKey;
  readonly limit: number;
}

/** The key under which all streams of the process are counted. */
const PROCESS_KEY = Symbol("process");

type StreamKey =
  | Key<"user" | "portal" | "portals" | "people-of" | "portals-of">
  | typeof PROCESS_KEY;

function boundsOf(
  { userId, partnerId, impersonatorId, tokenKind, jti }: Viewer,
  limits: typeof STREAM_LIMITS,
): Bound[] {
  const { perProcess, keptForOperators, perPartner, perUser } = limits;
  const isPortal = tokenKind === "portal";
  const kind = isPortal ? "portals-of" : "people-of";
  const kept = partnerId === null ? 0 : keptForOperators;
  return [
    ...(partnerId === null ? [] : [{ key: keyOf(kind, partnerId), limit: perPartner }]),
    ...(isPortal
      ? [
          { key: keyOf("portal", jti), limit: limits.perPortalSession },
          { key: keyOf("portals", impersonatorId ?? userId), limit: limits.perPortalMaker },
        ]
      : [{ key: keyOf("user", userId), limit: perUser }]),
    { key: PROCESS_KEY, limit: perProcess - kept },
  ];
}

/** An open stream: its queue of messages, and how many of them its TCP connection has taken. */
class OpenStream implements EventSink {
  /** The keys of the bounds under which the stream is counted. */
  readonly keys: readonly StreamKey[];
  readonly #clock: Clock;
  readonly #disconnect: () => void;
  controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Callers that wait until the client has read all messages. */
  #waiting: (() => void)[] = [];
  /**
   * The free room in the queue after the last message, and the last time at which the TCP connection has taken data.
   */
  #room = 0;
  #takenMs: number;
  /** The earliest time of the next probe, and the delay in ms until the probe after it. */
  probeFromMs: number;
  #probeAgainMs: number = PROBE_AGAIN_MS.first;
  /** Whether the next message starts a probe. */
  #isSuspected = false;
  /**
   * State of a probe: its remaining bytes, the time of its last part, and how often the TCP connection was full during
   * the probe.
   */
  #padding = 0;
  #paddedMs = 0;
  #refills = 0;

  constructor(keys: readonly StreamKey[], clock: Clock, disconnect: () => void) {
    this.keys = keys;
    this.#clock = clock;
    this.#disconnect = disconnect;
    this.#takenMs = this.probeFromMs = clock.monotonicMs();
  }

  send(message: Uint8Array): void {
    // `desiredSize` is null once the stream has failed; the client then counts as one that does not read.
    const room = this.controller?.desiredSize ?? -UNREAD_LIMIT;
    const nowMs = this.#clock.monotonicMs();
    if (room > 0 || room > this.#room) this.#takenMs = nowMs;
    if (room <= -UNREAD_LIMIT || nowMs - this.#takenMs >= STALL_MS) this.#disconnect();
    else this.#enqueue(message);
    if (!this.#isSuspected) return;
    this.#isSuspected = false;
    this.#padding = PROBE_BYTES;
    this.#paddedMs = Infinity;
    this.#refills = 0;
  }

  beat(): void {
    this.send(BEAT_COMMENT);
  }

  drained(): Promise<void> {
    if ((this.controller?.desiredSize ?? 1) > 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Makes the next message start a probe: as soon as the TCP connection has taken this message, comments follow. */
  probe(): void {
    this.probeFromMs = this.#clock.monotonicMs() + this.#probeAgainMs;
    this.#probeAgainMs = Math.min(2 * this.#probeAgainMs, PROBE_AGAIN_MS.longest);
    this.#isSuspected = true;
  }

  /** Ends the waits of `drained` and continues a probe, when the TCP connection has taken all messages. */
  taken(): void {
    this.release();
    if (this.#padding <= 0) return;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#paddedMs >= FULL_MS) this.#refills += 1;
    this.#padding = this.#refills < PROBE_REFILLS ? this.#padding - PROBE_COMMENT.length : 0;
    this.#paddedMs = nowMs;
    if (this.#padding > 0) this.#enqueue(PROBE_COMMENT);
  }

  /** Ends the response. A client that reads again later finds it closed. */
  close(): void {
    try {
      this.controller?.close();
    } catch {
      // The error is ignored: the client has disconnected, and the stream is closed.
    }
  }

  #enqueue(message: Uint8Array): void {
    try {
      this.controller?.enqueue(message);
      this.#room = this.controller?.desiredSize ?? 0;
    } catch {
      // The write failed because the client has disconnected. It may be the first sign of that, so the stream is ended.
      this.#disconnect();
    }
  }
}
