import type { Clock } from "../lib/clock.ts";
import { type Key, keyOf } from "../lib/kind-key.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { Problem } from "../lib/problem.ts";
import type { Principal } from "./principal.ts";

/**
 * Limits of open event streams: per process, of which some are kept for operators; for the people of a partner and of its
 * accounts; per user; per portal session; and for all portal sessions together whose links one user made. Streams of portal
 * sessions count apart from those of people, also by partner.
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
/** Time in ms for which the connection may take nothing of a stream before the stream ends. */
const STALL_MS = 15_000;
/**
 * A client that stops reading looks like one that reads while the connection still takes messages: the buffers of the
 * kernel and of a proxy take up to 12 MB on one machine, which a quiet stream does not fill in days. So where a limit is
 * reached, its streams are sent comments of this size. They fill the buffers of a client that does not read, and its stream ends
 * by `STALL_MS`. A client that reads gets all of them, or fewer: one whose connection was full for `FULL_MS`, and took
 * more afterwards, `REFILLS` times, has read.
 */
const PROBE_BYTES = 16_777_216;
const FULL_MS = 20;
const REFILLS = 3;
/** Number of streams that are probed at a time, because each may fill its buffers. */
const PROBED_AT_ONCE = 10;
/** A stream is probed again after this time in ms at the earliest, which doubles with each probe up to the second. */
const PROBE_AGAIN_MS = { first: 15_000, longest: 240_000 } as const;

export interface EventSink {
  /** Sends a message that `messageOf` has encoded. The same message may be sent to any number of streams. */
  send(message: Uint8Array): void;
  /** Sends a comment, which clients ignore. The comment keeps proxies and servers from closing an idle connection. */
  beat(): void;
  /** Resolves when the client has read all messages or has disconnected. */
  drained(): Promise<void>;
}

const encoder = new TextEncoder();
const BEAT = encoder.encode(": beat\n\n");
const PADDING = encoder.encode(`:${" ".repeat(65_533)}\n\n`);

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

/** The open `text/event-stream` responses of this process. */
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
    if (full.key === PROCESS) throw new Problem("overloaded", { headers });
    throw new Problem("rate_limited", { headers, message: "Too many streams are open." });
  }

  #isFull({ key, limit }: Bound): boolean {
    return this.#under(key).length >= limit;
  }

  #under(key: StreamKey): OpenStream[] {
    return [...this.#open].filter(({ keys }) => keys.includes(key));
  }

  /** Asks the clients of a full bound to prove that they read: first those that were not asked for longest. */
  #probe({ key }: Bound): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const due = this.#under(key).filter(({ probeFromMs }) => probeFromMs <= nowMs);
    const oldest = due.toSorted((a, b) => a.probeFromMs - b.probeFromMs);
    for (const stream of oldest.slice(0, PROBED_AT_ONCE)) stream.probe();
  }
}

type Viewer = Pick<Principal, "userId" | "partnerId" | "impersonatorId" | "tokenKind" | "jti">;

/** The highest number of open streams that are counted under one key. */
interface Bound {
  readonly key: StreamKey;
  readonly limit: number;
}

/** The key under which all streams count. */
const PROCESS = Symbol("process");

type StreamKey = Key<"user" | "portal" | "portals" | "people-of" | "portals-of"> | typeof PROCESS;

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
    { key: PROCESS, limit: perProcess - kept },
  ];
}

/** The messages of one stream, and how far its connection has taken them. */
class OpenStream implements EventSink {
  /** The keys of the bounds under which the stream counts. */
  readonly keys: readonly StreamKey[];
  readonly #clock: Clock;
  readonly #disconnect: () => void;
  controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Callers that wait until the client has read all messages. */
  #waiting: (() => void)[] = [];
  /** The room of the queue after the last message, and the last time at which there was more. */
  #room = 0;
  #takenMs: number;
  /** The time from which on the stream may be probed, and the time until the probe after that one. */
  probeFromMs: number;
  #probeAgainMs: number = PROBE_AGAIN_MS.first;
  /** Whether a probe begins with the next message. */
  #isSuspected = false;
  /** The rest of a probe, the time of its last part, and how often the connection was full meanwhile. */
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
    // `desiredSize` is null once the stream has failed.
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
    this.send(BEAT);
  }

  drained(): Promise<void> {
    if ((this.controller?.desiredSize ?? 1) > 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Makes the next message begin a probe: a connection that takes that one is asked to take more. */
  probe(): void {
    this.probeFromMs = this.#clock.monotonicMs() + this.#probeAgainMs;
    this.#probeAgainMs = Math.min(2 * this.#probeAgainMs, PROBE_AGAIN_MS.longest);
    this.#isSuspected = true;
  }

  /** Handles that the connection has taken all messages. */
  taken(): void {
    this.release();
    if (this.#padding <= 0) return;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#paddedMs >= FULL_MS) this.#refills += 1;
    this.#padding = this.#refills < REFILLS ? this.#padding - PADDING.length : 0;
    this.#paddedMs = nowMs;
    if (this.#padding > 0) this.#enqueue(PADDING);
  }

  /** Ends the response, also of a client that may read on one day. */
  close(): void {
    try {
      this.controller?.close();
    } catch {
      // The client has disconnected, and the stream is closed.
    }
  }

  #enqueue(message: Uint8Array): void {
    try {
      this.controller?.enqueue(message);
      this.#room = this.controller?.desiredSize ?? 0;
    } catch {
      // The client has disconnected and the stream is closed. A failed write may be the first sign of that.
      this.#disconnect();
    }
  }
}
