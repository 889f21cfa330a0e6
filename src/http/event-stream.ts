import { errorFields, type Log } from "../lib/log.ts";
import { Problem } from "../lib/problem.ts";
import type { Principal } from "./principal.ts";

/**
 * Limits of open streams per process, user, portal session, and user for all portal sessions of their links. Portal
 * sessions do not count as streams of the user.
 */
export const STREAM_LIMITS = {
  perProcess: 200,
  perUser: 5,
  perPortalSession: 3,
  perPortalMaker: 50,
};
const RETRY_AFTER_S = 5;
/** The number of unread messages at which a client is disconnected. */
const UNREAD_LIMIT = 256;

export interface EventSink {
  /** Sends a message of `messageOf`, which may be shared by any number of streams. */
  send(message: Uint8Array): void;
  /** Sends a comment, which clients ignore. It keeps proxies and servers from closing an idle connection. */
  beat(): void;
  /** Resolves when the client has read all messages, or has disconnected. */
  drained(): Promise<void>;
}

const encoder = new TextEncoder();
const BEAT = encoder.encode(": beat\n\n");

/** Encodes a message; `data` is sent as JSON. */
export function messageOf(event: string, data: unknown, id?: string): Uint8Array {
  const head = id === undefined ? "" : `id: ${id}\n`;
  return encoder.encode(`${head}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Encodes an id without a message, so that a client without matching events can resume from there. */
export function bookmarkOf(id: string): Uint8Array {
  return encoder.encode(`id: ${id}\n\n`);
}

/** The open `text/event-stream` responses of this process. */
export class EventStreams {
  readonly #deps: { readonly log: Log; readonly stopping?: AbortSignal | undefined };
  readonly #limits: typeof STREAM_LIMITS;
  /** Open streams by user, portal session or maker. */
  readonly #counts = new Map<string, number>();
  #open = 0;

  constructor(
    deps: { readonly log: Log; readonly stopping?: AbortSignal | undefined },
    limits = STREAM_LIMITS,
  ) {
    this.#deps = deps;
    this.#limits = limits;
  }

  /**
   * Returns a stream that stays open while `produce` runs. Its signal aborts when the client disconnects or the
   * process stops.
   */
  open(viewer: Viewer, produce: (sink: EventSink, signal: AbortSignal) => Promise<void>): Response {
    const bounds = boundsOf(viewer, this.#limits);
    this.#admit(bounds);
    const disconnected = new AbortController();
    const signals = [disconnected.signal, ...(this.#deps.stopping ? [this.#deps.stopping] : [])];
    const flow = new Flow();
    disconnected.signal.addEventListener("abort", () => flow.release());
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const sink = sinkOf(controller, flow, () => disconnected.abort());
        void produce(sink, AbortSignal.any(signals))
          .catch((error: unknown) => {
            // An error after the client has disconnected is no failure.
            if (!disconnected.signal.aborted)
              this.#deps.log.warn("stream.failed", errorFields(error));
          })
          .finally(() => {
            this.#leave(bounds);
            // Throws if the client has already closed it.
            if (!disconnected.signal.aborted) controller.close();
          });
      },
      pull: () => flow.release(),
      cancel: () => disconnected.abort(),
    });
    // X-Accel-Buffering keeps nginx from collecting messages before it forwards them.
    return new Response(body, {
      headers: { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" },
    });
  }

  #admit(bounds: readonly Bound[]): void {
    const headers = { "Retry-After": String(RETRY_AFTER_S) };
    if (bounds.some(({ key, limit }) => (this.#counts.get(key) ?? 0) >= limit))
      throw new Problem("rate_limited", { headers, message: "Too many streams are open." });
    if (this.#open >= this.#limits.perProcess) throw new Problem("overloaded", { headers });
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

type Viewer = Pick<Principal, "userId" | "impersonatorId" | "tokenKind" | "jti">;

/** The highest number of open streams under one key. */
interface Bound {
  readonly key: string;
  readonly limit: number;
}

function boundsOf(
  { userId, impersonatorId, tokenKind, jti }: Viewer,
  { perUser, perPortalSession, perPortalMaker }: typeof STREAM_LIMITS,
): Bound[] {
  if (tokenKind !== "portal") return [{ key: `user:${userId}`, limit: perUser }];
  return [
    { key: `portal:${jti}`, limit: perPortalSession },
    { key: `portals:${impersonatorId ?? userId}`, limit: perPortalMaker },
  ];
}

/** Callers that wait until the client reads on. */
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
      // The client has disconnected and the stream is closed, which may be noticed here first.
      disconnect();
    }
  };
  return {
    send,
    beat: () => send(BEAT),
    // desiredSize is null once the stream is closed or has failed.
    drained: () => ((controller.desiredSize ?? 1) > 0 ? Promise.resolve() : flow.wait()),
  };
}
