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

/** Contract 2.7. What our schemas describe nests to four levels. */
export const MAX_DEPTH = 64;
/** As much as the longest text of a schema, of 20,000 characters, may take with each half of a character escaped. */
export const MAX_STRING_BYTES = 256 * 1024;
/** How many bytes of the limit of a body there are for each value in it: fuller than this is none that we describe. */
const BYTES_PER_VALUE = 64;

/** How many values, in lists and under names, a body of this limit may have. */
export const maxValues = (bodyLimit: number): number => bodyLimit / BYTES_PER_VALUE;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Bytes → JSON value. Invalid UTF-8, malformed JSON and JSON beyond the bounds are the same 400; of duplicate keys the
 * last wins. The bounds keep what is done with a value as small as its bytes, before anybody knows who sent it.
 */
export function parseJson(raw: Uint8Array, bodyLimit: number): unknown {
  const excess = excessOf(raw, maxValues(bodyLimit));
  if (excess !== undefined) throw new Problem("invalid_json", { message: excess });
  try {
    return JSON.parse(utf8.decode(raw));
  } catch {
    throw new Problem("invalid_json");
  }
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Which bound the bytes are beyond, if they are JSON at all: looks at each of them once, up to there. */
function excessOf(raw: Uint8Array, values: number): string | undefined {
  let depth = 0;
  let seen = 0;
  for (let at = 0; at < raw.length; at++) {
    const byte = raw[at];
    if (byte === QUOTE) {
      const end = endOfString(raw, at + 1);
      if (end - at > MAX_STRING_BYTES) return "The request body has a text that is too long.";
      at = end;
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      seen += 1;
      depth += 1;
      if (depth > MAX_DEPTH) return `The request body nests deeper than ${MAX_DEPTH} levels.`;
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1;
    else if (byte === COMMA) seen += 1;
    if (seen > values) return `The request body has more than ${values} values.`;
  }
  return undefined;
}

function endOfString(raw: Uint8Array, from: number): number {
  let at = from;
  while (at < raw.length && raw[at] !== QUOTE) at += raw[at] === BACKSLASH ? 2 : 1;
  return at;
}
