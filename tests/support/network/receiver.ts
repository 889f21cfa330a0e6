import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** One POST as a partner's endpoint receives it. */
export interface Received {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly at: number;
  /** The answer, from the moment at which it is written. */
  answered?: { readonly status: number; readonly at: number };
}

type Answer = (request: Received, count: number) => number | "hang" | Promise<number>;

/**
 * A partner's endpoint, by default on loopback. `answer` chooses the status from the request and the number of earlier requests.
 */
export class Receiver {
  readonly received: Received[] = [];
  answer: Answer = () => 200;
  readonly #server: Server;
  readonly #host: string;

  private constructor(server: Server, host: string) {
    this.#server = server;
    this.#host = host;
  }

  static async start(answer?: Answer, host = "127.0.0.1"): Promise<Receiver> {
    const server = createServer();
    const receiver = new Receiver(server, host);
    if (answer) receiver.answer = answer;
    server.on("request", (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const one: Received = {
          path: request.url ?? "",
          headers: request.headers as Record<string, string>,
          body: Buffer.concat(chunks).toString(),
          at: performance.now(),
        };
        const count = receiver.received.push(one) - 1;
        void Promise.resolve(receiver.answer(one, count)).then((status) => {
          if (status === "hang") return;
          one.answered = { status, at: performance.now() };
          response.writeHead(status).end();
        });
      });
    });
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    return receiver;
  }

  get url(): string {
    return `http://${this.#host}:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  /** The event ids in the order in which they arrived. */
  get eventIds(): string[] {
    return this.received.map((one) => one.headers["x-svc-delivery"] ?? "");
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Long enough for a loaded machine, and shorter than the limit of a test, so that the error names the condition. */
const PATIENCE_MS = 60_000;

/** Polls until a condition holds; throws after `withinMs` with the name of the condition. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = PATIENCE_MS,
): Promise<void> {
  const startedAt = performance.now();
  while (!(await holds())) {
    const waitedMs = performance.now() - startedAt;
    if (waitedMs > withinMs) throw new Error(`Not within ${withinMs} ms: ${what}`);
    // The pauses grow, so that polling leaves the CPU to the awaited work.
    await Bun.sleep(Math.min(Math.max(5, waitedMs / 10), 150));
  }
}
