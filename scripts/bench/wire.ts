// A keep-alive HTTP/1.1 connection that takes little CPU time of the benchmark: it sends prepared bytes, and parses
// only the status and the end of a response.
import type { Socket } from "bun";

type Answered = (status: number, body: string) => void;

const HEAD_END = "\r\n\r\n";

export class Wire {
  readonly #socket: Socket;
  #text = "";
  #answered: Answered | undefined;
  #unsent: Uint8Array | undefined;
  #isOpen = true;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async open(root: string): Promise<Wire> {
    const { hostname, port } = new URL(root);
    let wire: Wire | undefined;
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_, chunk) => wire?.take(chunk.toString("latin1")),
        drain: () => wire?.flush(),
        close: () => wire?.fail(),
        error: () => wire?.fail(),
      },
    });
    wire = new Wire(socket);
    return wire;
  }

  /** Whether the connection is open; a server closes idle connections. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Sends a request; only one at a time is allowed. The status is 0 if the connection was lost. */
  send(bytes: Uint8Array, answered: Answered): void {
    this.#answered = answered;
    this.#unsent = bytes;
    this.flush();
  }

  ask(bytes: Uint8Array): Promise<{ status: number; body: string }> {
    return new Promise((resolve) => this.send(bytes, (status, body) => resolve({ status, body })));
  }

  close(): void {
    this.#answered = undefined;
    this.#socket.end();
  }

  flush(): void {
    if (this.#unsent === undefined) return;
    const written = this.#socket.write(this.#unsent);
    this.#unsent = written < this.#unsent.length ? this.#unsent.subarray(written) : undefined;
  }

  fail(): void {
    this.#isOpen = false;
    this.#finish(0, "");
  }

  take(chunk: string): void {
    this.#text = this.#text === "" ? chunk : this.#text + chunk;
    const end = this.#text.indexOf(HEAD_END);
    if (end < 0) return;
    const head = this.#text.slice(0, end);
    const from = end + HEAD_END.length;
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (this.#text.length < from + length) return;
    const body = this.#text.slice(from, from + length);
    this.#text = "";
    this.#finish(Number(head.slice(9, 12)), body);
  }

  #finish(status: number, body: string): void {
    const answered = this.#answered;
    this.#answered = undefined;
    answered?.(status, body);
  }
}

/** Builds the bytes of a request. */
export function bytesOf(
  method: string,
  path: string,
  { headers = {}, body }: { headers?: Readonly<Record<string, string>>; body?: string },
): Uint8Array {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: localhost",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
  ];
  return Buffer.from(`${lines.join("\r\n")}${HEAD_END}${body ?? ""}`);
}
