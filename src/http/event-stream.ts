import { errorFields, type Log } from "../lib/log.ts";
import { Problem } from "../lib/problem.ts";
import type { Principal } from "./principal.ts";

/**
 * Streams that one process keeps open in all, for a user, for a session of a portal link, and for all portal sessions
 * whose links one user made. The last two do not count as streams of that user.
 */
export const STREAM_LIMITS = {
  perProcess: 200,
  perUser: 5,
  perPortalSession: 3,
  perPortalMaker: 50,
};
const RETRY_AFTER_S = 5;
/** Messages that a client leaves unread before it is let go. */
const UNREAD_LIMIT = 256;

export interface EventSink {
  /** A message that `messageOf` made, for any number of streams. */
  send(message: Uint8Array): void;
  /** A line that clients ignore: it keeps proxies and servers from closing a quiet connection. */
  beat(): void;
  /** Resolves when the client has taken what was sent, or has left. */
  drained(): Promise<void>;
}

const encoder = new TextEncoder();
const BEAT = encoder.encode(": beat\n\n");

/** One message; `data` is sent as JSON. */
export function messageOf(event: string, data: unknown, id?: string): Uint8Array {
  const head = id === undefined ? "" : `id: ${id}\n`;
  return encoder.encode(`${head}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Nothing but the id from which a client goes on that hears of nothing more. */
export function bookmarkOf(id: string): Uint8Array {
  return encoder.encode(`id: ${id}\n\n`);
}

/** The open `text/event-stream` answers of this process. */
export class EventStreams {
  readonly #deps: { readonly log: Log; readonly stopping?: AbortSignal | undefined };
  readonly #limits: typeof STREAM_LIMITS;
  /** How many are open, by the user, portal session or maker that they count for. */
  readonly #counts = new Map<string, number>();
  #open = 0;

  constructor(
    deps: { readonly log: Log; readonly stopping?: AbortSignal | undefined },
    limits = STREAM_LIMITS,
  ) {
    this.#deps = deps;
    this.#limits = limits;
  }

  /** Answers a stream that lasts as long as `produce`, which ends when its signal aborts. */
  open(viewer: Viewer, produce: (sink: EventSink, signal: AbortSignal) => Promise<void>): Response {
    const bounds = boundsOf(viewer, this.#limits);
    this.#admit(bounds);
    const gone = new AbortController();
    const signals = [gone.signal, ...(this.#deps.stopping ? [this.#deps.stopping] : [])];
    const flow = new Flow();
    gone.signal.addEventListener("abort", () => flow.release());
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const sink = sinkOf(controller, flow, () => gone.abort());
        void produce(sink, AbortSignal.any(signals))
          .catch((error: unknown) => {
            // What is left undone for a client that has left is no failure.
            if (!gone.signal.aborted) this.#deps.log.warn("stream.failed", errorFields(error));
          })
          .finally(() => {
            this.#leave(bounds);
            // Throws if the client has closed it already.
            if (!gone.signal.aborted) controller.close();
          });
      },
      pull: () => flow.release(),
      cancel: () => gone.abort(),
    });
    // Without the last, nginx collects the messages before it passes them on.
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

/** A number of streams that may be open under one key. */
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

/** Who waits until the client reads on. */
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
  letGo: () => void,
): EventSink {
  const send = (message: Uint8Array) => {
    if ((controller.desiredSize ?? -UNREAD_LIMIT) <= -UNREAD_LIMIT) return letGo();
    try {
      controller.enqueue(message);
    } catch {
      // The client has left, and the stream is closed: it may be heard of here first.
      letGo();
    }
  };
  return {
    send,
    beat: () => send(BEAT),
    // Null once it is closed or has failed.
    drained: () => ((controller.desiredSize ?? 1) > 0 ? Promise.resolve() : flow.wait()),
  };
}
