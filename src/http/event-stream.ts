import { errorFields, type Log } from "../lib/log.ts";
import { Problem } from "../lib/problem.ts";

/** Streams that one process keeps open, and one user at one process. */
export const STREAM_LIMITS = { perProcess: 200, perUser: 5 };
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
  readonly #users = new Map<number, number>();
  #open = 0;

  constructor(
    deps: { readonly log: Log; readonly stopping?: AbortSignal | undefined },
    limits = STREAM_LIMITS,
  ) {
    this.#deps = deps;
    this.#limits = limits;
  }

  /** Answers a stream that lasts as long as `produce`, which ends when its signal aborts. */
  open(userId: number, produce: (sink: EventSink, signal: AbortSignal) => Promise<void>): Response {
    this.#admit(userId);
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
            this.#leave(userId);
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

  #admit(userId: number): void {
    const headers = { "Retry-After": String(RETRY_AFTER_S) };
    const own = this.#users.get(userId) ?? 0;
    if (own >= this.#limits.perUser)
      throw new Problem("rate_limited", { headers, message: "Too many streams are open." });
    if (this.#open >= this.#limits.perProcess) throw new Problem("overloaded", { headers });
    this.#users.set(userId, own + 1);
    this.#open += 1;
  }

  #leave(userId: number): void {
    const own = (this.#users.get(userId) ?? 1) - 1;
    if (own === 0) this.#users.delete(userId);
    else this.#users.set(userId, own);
    this.#open -= 1;
  }
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
