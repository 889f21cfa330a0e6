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

/** The open `text/event-stream` responses of this process. */
export class EventStreams {
  readonly #deps: { readonly log: Log; readonly stopping?: AbortSignal | undefined };
  readonly #limits: typeof STREAM_LIMITS;
  /** Numbers of open streams by the keys of `boundsOf`. */
  readonly #counts = new Map<Bound["key"], number>();
  #open = 0;

  constructor(
    deps: { readonly log: Log; readonly stopping?: AbortSignal | undefined },
    limits = STREAM_LIMITS,
  ) {
    this.#deps = deps;
    this.#limits = limits;
  }

  /**
   * Returns a response whose event stream stays open while `produce` runs. The signal of `produce` aborts when the
   * client disconnects or the process stops.
   */
  open(viewer: Viewer, produce: (sink: EventSink, signal: AbortSignal) => Promise<void>): Response {
    const bounds = boundsOf(viewer, this.#limits);
    this.#admit(bounds, viewer);
    const disconnected = new AbortController();
    const signals = [disconnected.signal, ...(this.#deps.stopping ? [this.#deps.stopping] : [])];
    const flow = new Flow();
    disconnected.signal.addEventListener("abort", () => flow.release());
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const sink = sinkOf(controller, flow, () => disconnected.abort());
        void produce(sink, AbortSignal.any(signals))
          .catch((error: unknown) => {
            // An error after the client has disconnected is not logged, because the stream has not failed.
            if (!disconnected.signal.aborted)
              this.#deps.log.warn("stream.failed", errorFields(error));
          })
          .finally(() => {
            this.#leave(bounds);
            // Closing would throw if the client has already closed the stream.
            if (!disconnected.signal.aborted) controller.close();
          });
      },
      pull: () => flow.release(),
      cancel: () => disconnected.abort(),
    });
    // The header X-Accel-Buffering keeps nginx from collecting messages before it forwards them.
    return new Response(body, {
      headers: { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" },
    });
  }

  #admit(bounds: readonly Bound[], { partnerId }: Viewer): void {
    const { perProcess, keptForOperators } = this.#limits;
    const headers = { "Retry-After": String(RETRY_AFTER_S) };
    if (bounds.some(({ key, limit }) => (this.#counts.get(key) ?? 0) >= limit))
      throw new Problem("rate_limited", { headers, message: "Too many streams are open." });
    if (this.#open >= perProcess - (partnerId === null ? 0 : keptForOperators))
      throw new Problem("overloaded", { headers });
    for (const { key } of bounds) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    this.#open += 1;
  }

  #leave(bounds: readonly Bound[]): void {
    for (const { key } of bounds) {
      const left = (this.#counts.get(key) ?? 1) - 1;
      if (left === 0) this.#counts.delete(key);
      else this.#counts.set(key, left);
    }
    this.#open -= 1;
  }
}

type Viewer = Pick<Principal, "userId" | "partnerId" | "impersonatorId" | "tokenKind" | "jti">;

/** The highest number of open streams that are counted under one key. */
interface Bound {
  readonly key: Key<"user" | "portal" | "portals" | "people-of" | "portals-of">;
  readonly limit: number;
}

function boundsOf(
  { userId, partnerId, impersonatorId, tokenKind, jti }: Viewer,
  { perPartner, perUser, perPortalSession, perPortalMaker }: typeof STREAM_LIMITS,
): Bound[] {
  const kind = tokenKind === "portal" ? "portals-of" : "people-of";
  const ofPartner = partnerId === null ? [] : [{ key: keyOf(kind, partnerId), limit: perPartner }];
  if (tokenKind !== "portal") return [...ofPartner, { key: keyOf("user", userId), limit: perUser }];
  return [
    ...ofPartner,
    { key: keyOf("portal", jti), limit: perPortalSession },
    { key: keyOf("portals", impersonatorId ?? userId), limit: perPortalMaker },
  ];
}

/** Queue of callers that wait until the client has read all messages. */
class Flow {
  #waiting: (() => void)[] = [];

  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

function sinkOf(
  controller: ReadableStreamDefaultController<Uint8Array>,
  flow: Flow,
  disconnect: () => void,
): EventSink {
  const send = (message: Uint8Array) => {
    if ((controller.desiredSize ?? -UNREAD_LIMIT) <= -UNREAD_LIMIT) return disconnect();
    try {
      controller.enqueue(message);
    } catch {
      // The client has disconnected and the stream is closed. A failed write may be the first sign of that.
      disconnect();
    }
  };
  return {
    send,
    beat: () => send(BEAT),
    // `desiredSize` is null once the stream is closed or has failed.
    drained: () => ((controller.desiredSize ?? 1) > 0 ? Promise.resolve() : flow.wait()),
  };
}
