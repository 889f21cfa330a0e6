import { networksOf } from "../lib/network.ts";
import { Problem } from "../lib/problem.ts";

/** Contract 2.7: a body over 64 KiB is 413. */
export const BODY_LIMIT = 64 * 1024;

/** From so many bytes on it takes milliseconds to read what a body says. */
export const LARGE_BODY = 8 * 1024;

/** Contract 2.7: the bytes of bodies that a process holds before their senders are verified. */
const HELD_BYTES = 64 * 1024 * 1024;
const RETRY_AFTER_S = 5;

export interface ReadOptions {
  /** The address of the sender. */
  readonly from: string;
  /** In bytes. */
  readonly limit: number;
  /** Whether only the size is judged: then no byte is kept, and a body whose size is declared is not read. */
  readonly isDiscarded?: boolean;
}

/** Bytes that count as held until `release` says that their sender is verified or refused. */
export interface UnverifiedBody {
  readonly bytes: Uint8Array;
  readonly release: () => void;
}

const NO_BODY: UnverifiedBody = { bytes: new Uint8Array(), release: () => {} };

/**
 * Reads request bodies, and bounds what strangers can make this process hold: bodies count until their senders are
 * verified. Where one is too many, the network that holds most loses its newest body that is still read, with a 503. A
 * crowd of half-sent bodies thus loses its own, and a small body from elsewhere is read. Bun closes a connection over
 * which a body does not arrive for half a minute, which ends the reading here; single bytes do not prolong it.
 */
export class UnverifiedBodies {
  readonly #limit: number;
  /** In the order in which they began. */
  readonly #all = new Set<Held>();
  #bytes = 0;

  constructor(limit = HELD_BYTES) {
    this.#limit = limit;
  }

  /** Reads at most `limit` bytes; one more is a 413, and the rest is not taken in. Large ones come one at a time. */
  async read(request: Request, options: ReadOptions): Promise<UnverifiedBody> {
    const { limit, from, isDiscarded = false } = options;
    if (request.body === null) return NO_BODY;
    const declared = request.headers.get("content-length");
    if (Number(declared ?? 0) > limit) throw new Problem("payload_too_large");
    if (isDiscarded && declared !== null) return NO_BODY;
    const held = new Held(request.body.getReader(), from);
    this.#all.add(held);
    try {
      const bytes = await this.#readAll(held, limit, isDiscarded);
      return { bytes, release: () => this.#release(held) };
    } catch (error) {
      this.#release(held);
      held.stop();
      throw error;
    }
  }

  async #readAll(held: Held, limit: number, isDiscarded: boolean): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for (let chunk = await held.next(); chunk !== undefined; chunk = await held.next()) {
      size += chunk.byteLength;
      if (size > limit) throw new Problem("payload_too_large");
      if (isDiscarded) continue;
      this.#hold(held, chunk.byteLength);
      chunks.push(chunk);
    }
    held.isRead = true;
    if (size >= LARGE_BODY) await nextTurn();
    const [first] = chunks;
    return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
  }

  #hold(held: Held, bytes: number): void {
    held.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > this.#limit) {
      const loser = this.#newestOfLargest();
      const refusal = new Problem("overloaded", {
        headers: { "Retry-After": String(RETRY_AFTER_S) },
      });
      if (loser === undefined || loser === held) throw refusal;
      this.#release(loser);
      loser.stop(refusal);
    }
  }

  #release(held: Held): void {
    if (this.#all.delete(held)) this.#bytes -= held.bytes;
  }

  /** The newest body that is still read, of the network that holds most among those with such bodies. */
  #newestOfLargest(): Held | undefined {
    const networks = new Map<string, { bytes: number; newest: Held | undefined }>();
    for (const one of this.#all) {
      const { bytes = 0, newest } = networks.get(one.network) ?? {};
      networks.set(one.network, {
        bytes: bytes + one.bytes,
        newest: one.isRead || one.bytes === 0 ? newest : one,
      });
    }
    const [largest] = [...networks.values()]
      .filter(({ newest }) => newest !== undefined)
      .toSorted((a, b) => b.bytes - a.bytes);
    return largest?.newest;
  }
}

type Reader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel">;

/** One body, from its first byte until its sender is verified. */
class Held {
  /** The widest network around the address: an IPv6 /48, or an IPv4 address. */
  readonly network: string;
  bytes = 0;
  isRead = false;
  readonly #reader: Reader;
  #refusal: Problem | undefined;

  constructor(reader: Reader, from: string) {
    this.#reader = reader;
    this.network = networksOf(from)[0] ?? from;
  }

  /** The next part; undefined at the end. Throws what the body was stopped with. */
  async next(): Promise<Uint8Array | undefined> {
    const part = await this.#reader.read().catch(() => undefined);
    if (this.#refusal !== undefined) throw this.#refusal;
    // The client has left or sent what is no HTTP, and the connection is closed: nothing of ours has failed.
    if (part === undefined)
      throw new Problem("invalid_json", { message: "The request body ended early." });
    return part.done ? undefined : part.value;
  }

  /** Takes no more of the body in; a read that waits for the client ends at once. */
  stop(refusal?: Problem): void {
    this.#refusal ??= refusal;
    void this.#reader.cancel().catch(() => {});
  }
}

let turn = Promise.resolve();

/** One a turn of the event loop: however many large bodies came at once, whoever else asks waits for one of them. */
function nextTurn(): Promise<void> {
  turn = turn.then(() => new Promise((resolve) => setImmediate(resolve)));
  return turn;
}

/** `application/json`, with any parameters. */
export function isJson(headers: Headers): boolean {
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  return type.trim().toLowerCase() === "application/json";
}
