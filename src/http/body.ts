import { networksOf } from "../lib/network.ts";
import { Problem } from "../lib/problem.ts";

/** Contract 2.7: a body over 64 KiB is 413. */
export const BODY_LIMIT = 64 * 1024;

/** The size from which parsing a body takes milliseconds. */
export const LARGE_BODY = 8 * 1024;

/** The bytes of unverified bodies that a process holds (contract 2.7). */
const HELD_BYTES = 64 * 1024 * 1024;
const RETRY_AFTER_S = 5;

export interface ReadOptions {
  /** The sender's address. */
  readonly from: string;
  /** The limit in bytes. */
  readonly limit: number;
  /** Checks the size only: no byte is kept, and a body with a declared size is not read. */
  readonly isDiscarded?: boolean;
}

/** The bytes of a body. They count as held until `release`, which is called when the sender is verified or rejected. */
export interface UnverifiedBody {
  readonly bytes: Uint8Array;
  readonly release: () => void;
}

const NO_BODY: UnverifiedBody = { bytes: new Uint8Array(), release: () => {} };

/**
 * Reads request bodies and limits the memory that unverified senders can use. A body counts until its sender is
 * verified. Beyond the limit, the network that holds the most bytes loses its newest unfinished body, with a 503. So a
 * crowd of half-sent bodies loses its own ones, and small bodies from other networks are read. Bun closes a connection
 * whose body does not arrive for half a minute, which ends the reading here; single bytes do not prolong it.
 */
export class UnverifiedBodies {
  readonly #limit: number;
  /** Bodies in the order of their beginning. */
  readonly #all = new Set<Held>();
  #bytes = 0;

  constructor(limit = HELD_BYTES) {
    this.#limit = limit;
  }

  /**
   * Reads up to `limit` bytes. A larger body is a 413, and its rest is not read. Large bodies are returned one per
   * turn of the event loop.
   */
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
      const victim = this.#newestOfLargestNetwork();
      const problem = new Problem("overloaded", {
        headers: { "Retry-After": String(RETRY_AFTER_S) },
      });
      if (victim === undefined || victim === held) throw problem;
      this.#release(victim);
      victim.stop(problem);
    }
  }

  #release(held: Held): void {
    if (this.#all.delete(held)) this.#bytes -= held.bytes;
  }

  /** Returns the newest unfinished body of the network that holds the most bytes among those with such bodies. */
  #newestOfLargestNetwork(): Held | undefined {
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

/** A body from its first byte until its sender is verified. */
class Held {
  /** The widest network of the address: an IPv6 /48, or an IPv4 address. */
  readonly network: string;
  bytes = 0;
  isRead = false;
  readonly #reader: Reader;
  #problem: Problem | undefined;

  constructor(reader: Reader, from: string) {
    this.#reader = reader;
    this.network = networksOf(from)[0] ?? from;
  }

  /** Reads the next chunk; undefined at the end. Throws the error with which the body was stopped. */
  async next(): Promise<Uint8Array | undefined> {
    const part = await this.#reader.read().catch(() => undefined);
    if (this.#problem !== undefined) throw this.#problem;
    // The client disconnected or sent invalid HTTP, and the connection is closed; this is no failure of the server.
    if (part === undefined)
      throw new Problem("invalid_json", { message: "The request body ended early." });
    return part.done ? undefined : part.value;
  }

  /** Stops reading the body; a pending read ends at once. */
  stop(problem?: Problem): void {
    this.#problem ??= problem;
    void this.#reader.cancel().catch(() => {});
  }
}

let turn = Promise.resolve();

/**
 * Resolves once per turn of the event loop, in order. However many large bodies arrive at once, another request waits
 * for one of them only.
 */
function nextTurn(): Promise<void> {
  turn = turn.then(() => new Promise((resolve) => setImmediate(resolve)));
  return turn;
}

/** Whether the content type is `application/json`, with any parameters. */
export function isJson(headers: Headers): boolean {
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  return type.trim().toLowerCase() === "application/json";
}

/** The deepest nesting of a JSON body (contract 2.7). The described schemas nest to four levels. */
export const MAX_DEPTH = 64;
/**
 * The longest JSON string: the longest text of a schema, 20,000 characters, with both halves of each character
 * escaped.
 */
export const MAX_STRING_BYTES = 256 * 1024;
/** Bytes of the body limit per permitted value. No described body is denser. */
const BYTES_PER_VALUE = 64;

/** Returns the number of values, in arrays and objects, that a body with this limit may have. */
export const maxValues = (bodyLimit: number): number => bodyLimit / BYTES_PER_VALUE;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses JSON. Invalid UTF-8, malformed JSON and JSON beyond the bounds are the same 400; of duplicate keys the last
 * one counts. The bounds keep the work on a value proportional to its bytes while its sender is unknown.
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

/** Scans the bytes once and returns the first exceeded bound, provided that they are JSON. */
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
