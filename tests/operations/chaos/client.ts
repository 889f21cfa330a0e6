import { BASE_PATH } from "../../../src/http/access.ts";
import { nowMs } from "./now.ts";
import type { WrongAnswer } from "../../verdicts/facts.ts";

const GIVES_UP_MS = 8_000;
const UNAVAILABLE = 503;

export interface Answer {
  /** Undefined without an answer, or if the answer does not tell whether the request was carried out. */
  readonly status: number | undefined;
  /** The status, or the kind of failure. */
  readonly told: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface CallOptions {
  /** The statuses besides 503 that the contract allows for this request; without them the answer is not checked. */
  readonly wants?: readonly number[];
  /** Whether the body of an answer fits this request and no other. */
  readonly fits?: (body: Answer["body"]) => boolean;
  readonly token?: string;
  /** A string is sent unchanged; anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Calls one of the API processes over its own connection and with a time limit, as any client does. Collects answers
 * that the contract does not allow for the request; a broken connection is no answer.
 */
export class Client {
  readonly #roots: readonly string[];
  /** Counts of answers by status or kind of failure. */
  readonly counts = new Map<string, number>();
  readonly wrong: WrongAnswer[] = [];
  #nth = 0;

  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const answer = await this.#call(method, path, options);
    this.counts.set(answer.told, (this.counts.get(answer.told) ?? 0) + 1);
    this.#findViolations(method, path, { answer, options });
    return answer;
  }

  #findViolations(
    method: string,
    path: string,
    { answer, options }: { readonly answer: Answer; readonly options: CallOptions },
  ): void {
    const { wants, fits = () => true, body: sent } = options;
    const { body } = answer;
    const status = Number(answer.told);
    if (wants === undefined || Number.isNaN(status) || status === UNAVAILABLE) return;
    if (!wants.includes(status) || !fits(body))
      this.wrong.push({ method, path, status, body, sent, endedMs: nowMs() });
  }

  async #call(method: string, path: string, options: CallOptions): Promise<Answer> {
    const { token, body, headers } = options;
    const root = this.#roots[this.#nth++ % this.#roots.length] ?? "";
    try {
      const response = await fetch(`${root}${BASE_PATH}${path}`, {
        method,
        keepalive: false,
        signal: AbortSignal.timeout(GIVES_UP_MS),
        headers: {
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          ...(body !== undefined && { "Content-Type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      const { status } = response;
      return {
        status: status >= 500 ? undefined : status,
        told: String(status),
        body: text.startsWith("{") ? (JSON.parse(text) as Answer["body"]) : {},
      };
    } catch (error) {
      return { status: undefined, told: error instanceof Error ? error.name : "error", body: {} };
    }
  }

  /** Repeats the request until there is a definite answer, and throws if it is not the wanted one. */
  async insist(method: string, path: string, options: CallOptions & { want: number }) {
    for (let tried = 1; ; tried++) {
      const wants = [options.want];
      const { status, body, told } = await this.call(method, path, { ...options, wants });
      if (status === options.want) return body;
      if (status !== undefined || tried === 120)
        throw new Error(`${method} ${path} was answered ${told}: ${JSON.stringify(body)}`);
      await Bun.sleep(500);
    }
  }
}
