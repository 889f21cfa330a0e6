// Sends requests in a closed loop as fast as responses arrive, or in an open loop at a fixed rate.
import type { Requests } from "./requests.ts";
import { Wire } from "./wire.ts";

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

const now = () => performance.timeOrigin + performance.now();

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
  taken.answeredAt[n] = now();
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
  const startedAt = now();
  const endsAt = startedAt + ms;
  await Promise.all(
    wires.map(
      (wire, client) =>
        new Promise<void>((resolve) => {
          const next = () => {
            const request = bytes[taken.count];
            const at = now();
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
  return { ...taken, startedAt, endedAt: now() };
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
  const startedAt = now();
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
    const wait = due - now();
    if (wait > 0.2) await Bun.sleep(wait);
    const n = taken.count++;
    taken.sentAt[n] = now();
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
  return { ...taken, startedAt, endedAt: now() };
}
