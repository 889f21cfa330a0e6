import { Agent, request } from "node:http";

import { usage } from "./failure.ts";
import type { SentAttempt } from "./stream.ts";

const ANSWER_WITHIN_MS = 15_000;

export interface Forwarded {
  /** Null without an answer. */
  readonly status: number | null;
  readonly durationMs: number;
  /** Why there is no answer. */
  readonly error: string | null;
}

/** A port or an address of this machine's: nobody else is sent a partner's events. */
export function targetOf(text: string): URL {
  const given = /^\d{1,5}$/.test(text) ? `http://127.0.0.1:${text}/` : text;
  const target = URL.canParse(given) ? new URL(given) : undefined;
  const isHere = ["127.0.0.1", "[::1]", "localhost"].includes(target?.hostname ?? "");
  if (target?.protocol !== "http:" || !isHere)
    throw usage(`--forward-to ${text} is neither a port nor an http address of this machine.`);
  return target;
}

/** Posts what the endpoint was sent, byte for byte and header for header, as the product does: within 15 s. */
export class Forwarder {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #target: URL;
  readonly #nowMs: () => number;

  constructor(target: URL, nowMs: () => number) {
    this.#target = target;
    this.#nowMs = nowMs;
  }

  post(headers: NonNullable<SentAttempt["request_headers"]>, body: string): Promise<Forwarded> {
    const beganMs = this.#nowMs();
    const { hostname, port, pathname, search } = this.#target;
    return new Promise((resolve) => {
      const end = (status: number | null, error: string | null) =>
        resolve({ status, error, durationMs: Math.round(this.#nowMs() - beganMs) });
      const sent = request(
        {
          method: "POST",
          hostname: hostname.replaceAll(/^\[|\]$/g, ""),
          port: port === "" ? 80 : Number(port),
          path: pathname + search,
          agent: this.#agent,
          // As they were, the name of the endpoint's host included.
          setHost: false,
          headers: withoutConnection(headers),
          timeout: ANSWER_WITHIN_MS,
        },
        (answer) => {
          answer.resume();
          answer.once("end", () => end(answer.statusCode ?? null, null));
          answer.once("error", (error) => end(null, error.message));
        },
      );
      sent.once("timeout", () => sent.destroy(new Error("no answer within 15 s")));
      sent.once("error", (error) => end(null, wordsOf(error)));
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** What belongs to the connection is ours to say. */
function withoutConnection(headers: Readonly<Record<string, string | string[]>>) {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.toLowerCase() !== "connection"),
  );
}

function wordsOf(error: Error): string {
  return "code" in error && error.code === "ECONNREFUSED" ? "nobody listens there" : error.message;
}
