import { BASE_PATH } from "../../src/http/base-path.ts";

const GIVES_UP_MS = 8_000;

export interface Answer {
  /** Undefined: there was none, or it does not say whether the request was carried out. */
  readonly status: number | undefined;
  /** As it was answered, or the kind of the failure. */
  readonly told: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface CallOptions {
  readonly token?: string;
  /** Sent as it is if it is text. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls one of the API processes, as any client does: over a connection of its own, and not for ever. */
export class Client {
  readonly #roots: readonly string[];
  /** How often there was which answer. */
  readonly counts = new Map<string, number>();
  #nth = 0;

  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const answer = await this.#call(method, path, options);
    this.counts.set(answer.told, (this.counts.get(answer.told) ?? 0) + 1);
    return answer;
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
      const { status, body, told } = await this.call(method, path, options);
      if (status === options.want) return body;
      if (status !== undefined || tried === 30)
        throw new Error(`${method} ${path} was answered ${told}: ${JSON.stringify(body)}`);
      await Bun.sleep(500);
    }
  }
}
