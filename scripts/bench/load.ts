// Prepares requests as bytes before a measurement starts, and sends them in a closed loop as fast as responses arrive,
// or in an open loop at a fixed rate.
import type { Socket } from "bun";

import { quantile, round } from "./rig.ts";
import { EVENTS_PATH, type Partner, type Sign } from "./tenants.ts";

type Answered = (status: number, body: string) => void;

const HEAD_END = "\r\n\r\n";

/**
 * A keep-alive HTTP/1.1 connection that takes little CPU time of the benchmark: it sends prepared bytes, and parses only
 * the status and the end of a response.
 */
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

/** Builds the bytes of a request. A body that is an object is sent as JSON. */
export function bytesOf(
  method: string,
  path: string,
  {
    headers = {},
    body,
  }: { headers?: Readonly<Record<string, string>>; body?: string | object | undefined } = {},
): Uint8Array {
  const text = typeof body === "object" ? JSON.stringify(body) : body;
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: localhost",
    ...(text === undefined
      ? []
      : ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(text)}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return Buffer.from(`${lines.join("\r\n")}${HEAD_END}${text ?? ""}`);
}

export interface Requests {
  readonly name: string;
  readonly bytes: readonly Uint8Array[];
  readonly perRequest: number;
}

/** Builds reports of new reviews for the partners in turn. Each report is an event for one subscription. */
export function prepare(
  sign: Sign,
  partners: readonly Pick<Partner, "siteId">[],
  { name, count, perRequest }: { name: string; count: number; perRequest: number },
): Requests {
  const at = new Date().toISOString();
  const event = (n: number, i: number) => {
    const key = `${name}-${n}-${i}`;
    return {
      id: key,
      type: "review.created",
      occurred_at: at,
      store_review_site_id: partners[(n * perRequest + i) % partners.length]?.siteId,
      review: {
        external_review_id: key,
        rate: (i % 5) + 1,
        reviewer: "Ada Reviewer",
        reviewer_email: "ada@homeowner.example",
        content: `Friendly people, clean work, and on time. Number ${n} of many, and ${i} of its own kind.`,
        reviewed_at: at,
      },
    };
  };
  const events = (n: number) => Array.from({ length: perRequest }, (_, i) => event(n, i));
  const bytes = Array.from({ length: count }, (_, n) => {
    const body = JSON.stringify({ events: events(n) });
    return bytesOf("POST", EVENTS_PATH, { headers: { "X-Provider-Signature": sign(body) }, body });
  });
  return { name, bytes, perRequest };
}

/**
 * Returns the request of an event and its position in the request, from the external review id that the receiver got.
 */
export function placeOf(
  { name }: Pick<Requests, "name">,
  key: string | undefined,
): { n: number; i: number } | undefined {
  if (key?.startsWith(`${name}-`) !== true) return undefined;
  const [, n, i] = /-(\d+)-(\d+)$/.exec(key) ?? [];
  return { n: Number(n), i: Number(i) };
}

/** The times at which each request was sent and answered, in ms since the epoch, and its client. */
export interface Offered {
  readonly sentAt: Float64Array;
  readonly answeredAt: Float64Array;
  readonly client: Uint16Array;
  /** Number of requests that were sent. The remaining ones were not needed. */
  readonly count: number;
  /** Number of requests with a response other than 2xx. */
  readonly refused: number;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** Returns the time in ms since the epoch, by the same clock as the receivers. */
export const nowMs = () => performance.timeOrigin + performance.now();

const OK = 200;
const NOT_OK = 300;

function begin(size: number) {
  return {
    count: 0,
    refused: 0,
    sentAt: new Float64Array(size),
    answeredAt: new Float64Array(size),
    client: new Uint16Array(size),
  };
}

function note(taken: ReturnType<typeof begin>, n: number, status: number): void {
  taken.answeredAt[n] = nowMs();
  if (status < OK || status >= NOT_OK) taken.refused += 1;
}

/**
 * Closed loop: each client sends its next request after the previous response, until the time is over or no request is
 * left.
 */
export async function asFastAs(
  root: string,
  { bytes }: Pick<Requests, "bytes">,
  { clients, ms }: { clients: number; ms: number },
  stop?: AbortSignal,
): Promise<Offered> {
  const wires = await Promise.all(Array.from({ length: clients }, () => Wire.open(root)));
  const taken = begin(bytes.length);
  const startedAt = nowMs();
  const endsAt = startedAt + ms;
  await Promise.all(
    wires.map(
      (wire, client) =>
        new Promise<void>((resolve) => {
          const next = () => {
            const request = bytes[taken.count];
            const at = nowMs();
            if (request === undefined || at > endsAt || stop?.aborted === true) return resolve();
            const n = taken.count++;
            taken.sentAt[n] = at;
            taken.client[n] = client;
            wire.send(request, (status) => {
              note(taken, n, status);
              if (status === 0) return resolve();
              next();
            });
          };
          next();
        }),
    ),
  );
  for (const wire of wires) wire.close();
  return { ...taken, startedAt, endedAt: nowMs() };
}

/** Sends requests in a closed loop, by default all of them. Throws if one is refused. */
export async function sendAccepted(
  root: string,
  requests: Pick<Requests, "bytes">,
  { clients, ms = Number.POSITIVE_INFINITY }: { clients: number; ms?: number },
): Promise<Offered> {
  const offered = await asFastAs(root, requests, {
    clients: Math.min(clients, requests.bytes.length),
    ms,
  });
  if (offered.refused > 0)
    throw new Error(`${offered.refused} of ${offered.count} requests were refused.`);
  return offered;
}

/**
 * Number of connections that an open loop opens in advance. A request without a free connection waits, and the wait is
 * part of its delay.
 */
const CONNECTIONS = 64;

/** Open loop: each request is sent when it is due. */
export async function atRate(
  root: string,
  { bytes }: Pick<Requests, "bytes">,
  perSecond: number,
  stop: AbortSignal,
): Promise<Offered> {
  const free = await Promise.all(Array.from({ length: CONNECTIONS }, () => Wire.open(root)));
  const all = [...free];
  const taken = begin(bytes.length);
  const waiting: number[] = [];
  let answered = 0;
  const startedAt = nowMs();
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const finish = () => resolve();
  const send = (wire: Wire, n: number) =>
    wire.send(bytes[n] ?? new Uint8Array(), (status) => {
      note(taken, n, status);
      answered += 1;
      const next = wire.isOpen ? waiting.shift() : undefined;
      if (next !== undefined) send(wire, next);
      else free.push(wire);
      if (answered === bytes.length) finish();
    });
  while (taken.count < bytes.length && !stop.aborted) {
    const due = startedAt + (taken.count * 1_000) / perSecond;
    const wait = due - nowMs();
    if (wait > 0.2) await Bun.sleep(wait);
    const n = taken.count++;
    taken.sentAt[n] = nowMs();
    const wire = free.pop();
    if (wire === undefined) waiting.push(n);
    else if (wire.isOpen) send(wire, n);
    else {
      const fresh = await Wire.open(root);
      all.push(fresh);
      send(fresh, n);
    }
  }
  stop.addEventListener("abort", finish);
  if (!stop.aborted) await over;
  stop.removeEventListener("abort", finish);
  for (const wire of all) wire.close();
  return { ...taken, startedAt, endedAt: nowMs() };
}

/** Returns the time in ms from each request to its response. */
export function waitsOf({ count, sentAt, answeredAt }: Offered): number[] {
  return Array.from({ length: count }, (_, n) => (answeredAt[n] ?? 0) - (sentAt[n] ?? 0));
}

export function latencies(waits: readonly number[]) {
  return {
    p50Ms: round(quantile(waits, 0.5), 1),
    p95Ms: round(quantile(waits, 0.95), 1),
    p99Ms: round(quantile(waits, 0.99), 1),
  };
}
