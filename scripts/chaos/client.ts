import { BASE_PATH } from "../../src/http/access.ts";
import { nowMs } from "./now.ts";
import type { WrongAnswer } from "./verdict/facts.ts";

const GIVES_UP_MS = 8_000;
const UNAVAILABLE = 503;

export interface Answer {
  /** Undefined: there was none, or it does not say whether the request was carried out. */
  readonly status: number | undefined;
  /** As it was answered, or the kind of the failure. */
  readonly told: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface CallOptions {
  /** The statuses besides 503 that the contract gives this request; without them the answer is not judged. */
  readonly wants?: readonly number[];
  /** Whether such an answer is about this request and not about another one. */
  readonly fits?: (body: Answer["body"]) => boolean;
  readonly token?: string;
  /** Sent as it is if it is text. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Calls one of the API processes, as any client does: over a connection of its own, and not for ever. Keeps each answer
 * that its request must not get, for the judge; a connection that breaks is no answer.
 */
export class Client {
  readonly #roots: readonly string[];
  /** How often there was which answer. */
  readonly counts = new Map<string, number>();
  readonly wrong: WrongAnswer[] = [];
  #nth = 0;

  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const answer = await this.#call(method, path, options);
    this.counts.set(answer.told, (this.counts.get(answer.told) ?? 0) + 1);
    this.#judge(method, path, { answer, options });
    return answer;
  }

  #judge(
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

  /** Asks until there is an answer that says something, and insists that it is this one. */
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
