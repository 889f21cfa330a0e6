// A minimal load generator over kept connections, with one request at a time on each.
import { connect, type Socket } from "node:net";

/** The content of one request. */
export interface LoadRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly token?: string;
  readonly body?: unknown;
}

export interface LoadResult {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Status → count. */
  readonly statuses: Readonly<Record<number, number>>;
}

const HEAD_END = Buffer.from("\r\n\r\n");

/** A connection that resolves each request with its status. */
export class LoadConnection {
  readonly #socket: Socket;
  #buffered: Buffer = Buffer.alloc(0);
  #answered: ((status: number) => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
  }

  /** Opens a connection; `from` is the local address to use. */
  static open(root: string, from?: string): Promise<LoadConnection> {
    const { hostname, port } = new URL(root);
    const place = { port: Number(port), host: hostname, ...(from && { localAddress: from }) };
    return new Promise((resolve, reject) => {
      const socket = connect(place, () => resolve(new LoadConnection(socket)));
      socket.setNoDelay(true);
      socket.once("error", reject);
    });
  }

  send(bytes: Buffer): Promise<number> {
    return new Promise((resolve) => {
      this.#answered = resolve;
      this.#socket.write(bytes);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#buffered = this.#buffered.length === 0 ? chunk : Buffer.concat([this.#buffered, chunk]);
    const end = this.#buffered.indexOf(HEAD_END);
    if (end === -1) return;
    const head = this.#buffered.toString("latin1", 0, end);
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (this.#buffered.length < end + HEAD_END.length + length) return;
    this.#buffered = Buffer.alloc(0);
    this.#answered?.(Number(head.slice(9, 12)));
  }
}

export function bytesOf({ method, path, token, body }: LoadRequest): Buffer {
  const payload = body === undefined ? "" : JSON.stringify(body);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: localhost",
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...(body === undefined ? [] : ["Content-Type: application/json"]),
    ...(method === "POST" ? [`Content-Length: ${Buffer.byteLength(payload)}`] : []),
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${payload}`);
}

/** Sends requests at full speed over `connections` connections, for `seconds`. */
export async function load(
  root: string,
  next: (n: number) => Buffer,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<LoadResult> {
  const opened = await Promise.all(
    Array.from({ length: connections }, () => LoadConnection.open(root)),
  );
  const times: number[] = [];
  const statuses: Record<number, number> = {};
  let sent = 0;
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1000;
  await Promise.all(
    opened.map(async (connection) => {
      while (performance.now() < endsAt) {
        const before = performance.now();
        const status = await connection.send(next(sent++));
        times.push(performance.now() - before);
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
      connection.close();
    }),
  );
  const elapsedS = (performance.now() - startedAt) / 1000;
  return {
    perSecond: times.length / elapsedS,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    statuses,
  };
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
