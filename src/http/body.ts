import { networksOf } from "../lib/network.ts";
import { Problem } from "../lib/problem.ts";

/** Limit of a request body in bytes. A larger body gets the status 413 (contract 2.7). */
export const BODY_LIMIT = 64 * 1024;

/** The size in bytes from which parsing a body takes milliseconds. */
export const LARGE_BODY = 8 * 1024;

/** Limit in bytes for all unverified bodies together that a process keeps in memory (contract 2.7). */
const HELD_BYTES = 64 * 1024 * 1024;
const RETRY_AFTER_S = 5;
/**
 * Limit in bytes for all large bodies together that a process works on (contract 2.7). Parsed, checked and written, a
 * body of 1 MiB takes up to 20 MiB, so these take 160 MiB.
 */
const WORKED_BYTES = 8 * 1024 * 1024;

export interface ReadOptions {
  /** The network address of the sender. */
  readonly from: string;
  /** The limit of the body in bytes. */
  readonly limit: number;
  /** Whether only the size is checked: no byte is kept, and a body with a declared size is not read. */
  readonly isDiscarded?: boolean;
}

/**
 * The bytes of a body. They count towards the memory limit until `release`, which is called when the sender is rejected or
 * the work on the body begins.
 */
export interface UnverifiedBody {
  readonly bytes: Uint8Array;
  readonly release: () => void;
}

const NO_BODY: UnverifiedBody = { bytes: new Uint8Array(), release: () => {} };

/**
 * Reads request bodies and limits their memory. A body counts until its sender is verified and the work on it begins.
 * Beyond the limit, the network that uses the most bytes loses its newest unfinished body, with a 503. So a
 * flood of half-sent bodies loses its own bodies, and small bodies from other networks are read. Bun closes a
 * connection whose body does not arrive for half a minute, which ends the reading here; single bytes do not prolong
 * this time.
 */
export class UnverifiedBodies {
  readonly #limit: number;
  /** Bodies in the order in which their first bytes arrived. */
  readonly #all = new Set<Held>();
  #bytes = 0;
  #worked = 0;
  readonly #waiting: { readonly bytes: number; readonly start: (end: () => void) => void }[] = [];

  constructor(limit = HELD_BYTES) {
    this.#limit = limit;
  }

  /**
   * Waits until the process may work on a large body of this size, in the order of the calls. The returned function ends
   * the work; further calls of it do nothing.
   */
  begin(bytes: number): Promise<() => void> {
    return new Promise((start) => {
      this.#waiting.push({ bytes, start });
      this.#startWaiting();
    });
  }

  #startWaiting(): void {
    while (this.#worked < WORKED_BYTES) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      let bytes = next.bytes;
      this.#worked += bytes;
      next.start(() => {
        this.#worked -= bytes;
        bytes = 0;
        this.#startWaiting();
      });
    }
  }

  /**
   * Reads a body of up to `limit` bytes. A larger body gives a 413, and its rest is not read. Large bodies are
   * returned one per turn of the event loop.
   */
  async read(request: Request, options: ReadOptions): Promise<UnverifiedBody> {
    const { limit, from, isDiscarded = false } = options;
    const declared = request.headers.get("content-length");
    const size = Number(declared ?? Infinity);
    // Reading the bytes of a request costs a tenth of a stream over its body, which the property `body` makes.
    const isSmall = size < LARGE_BODY && size <= limit;
    if (!isSmall && request.body === null) return NO_BODY;
    if (size > limit && declared !== null) throw new Problem("payload_too_large");
    if (isDiscarded && declared !== null) return NO_BODY;
    const reader = isSmall ? undefined : request.body?.getReader();
    const held = new Held(from, reader);
    this.#all.add(held);
    try {
      const bytes =
        reader === undefined
          ? await this.#readSmall(held, request, size)
          : await this.#readAll(held, reader, { limit, isDiscarded });
      return { bytes, release: () => this.#release(held) };
    } catch (error) {
      this.#release(held);
      held.stop();
      throw error;
    }
  }

  /** Reads a small body. Its declared size counts towards the memory limit before its bytes arrive. */
  async #readSmall(held: Held, request: Request, size: number): Promise<Uint8Array> {
    this.#hold(held, size);
    const bytes = await held.unlessStopped(request.bytes());
    held.isRead = true;
    return bytes;
  }

  async #readAll(
    held: Held,
    reader: Reader,
    { limit, isDiscarded }: { readonly limit: number; readonly isDiscarded: boolean },
  ): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const { done, value } = await held.unlessStopped(reader.read());
      if (done) break;
      size += value.byteLength;
      if (size > limit) throw new Problem("payload_too_large");
      if (isDiscarded) continue;
      this.#hold(held, value.byteLength);
      chunks.push(value);
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

  /** Returns an unfinished body to stop: the newest body of that network whose bodies use the most bytes. */
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

/** A request body from the start of its reading until its sender is verified. */
class Held {
  /** The widest network of the sender's address: an IPv6 /48, or an IPv4 address. */
  readonly network: string;
  bytes = 0;
  isRead = false;
  readonly #reader: Reader | undefined;
  readonly #stopped = Promise.withResolvers<never>();

  constructor(from: string, reader: Reader | undefined) {
    this.network = networksOf(from)[0] ?? from;
    this.#reader = reader;
    this.#stopped.promise.catch(() => {});
  }

  /** Waits for bytes of the body. If the body is stopped before they come, it throws the error of `stop`. */
  unlessStopped<T>(bytes: Promise<T>): Promise<T> {
    const read = bytes.catch(() => {
      // The client disconnected or sent invalid HTTP, and the connection is closed. The server has not failed, so this
      // is an error of the client.
      throw new Problem("invalid_json", { message: "The request body ended early." });
    });
    return Promise.race([this.#stopped.promise, read]);
  }

  /** Stops reading the body; a pending read ends immediately. */
  stop(problem?: Problem): void {
    if (problem !== undefined) this.#stopped.reject(problem);
    void this.#reader?.cancel().catch(() => {});
  }
}

let turn = Promise.resolve();

/**
 * Resolves once per turn of the event loop, in order. Parsing a large body blocks the loop, so another request waits
 * for one large body only, however many arrive at the same time.
 */
function nextTurn(): Promise<void> {
  turn = turn.then(() => new Promise((resolve) => setImmediate(resolve)));
  return turn;
}

/** Returns whether the content type is `application/json`, with any parameters. */
export function isJson(headers: Headers): boolean {
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  return type.trim().toLowerCase() === "application/json";
}

/** The deepest nesting of a JSON body (contract 2.7). The schemas of the API nest to four levels. */
export const MAX_DEPTH = 64;
/** The most bytes of a text in UTF-8, without its escapes. Actions have the same limit on every path (contract 9.7). */
export const MAX_TEXT_BYTES = 256 * 1024;
/** Bytes of the body limit for each permitted JSON value. No body of the API has more values per byte. */
const BYTES_PER_VALUE = 64;

/** Returns the highest number of values, in arrays and objects, of a JSON body with this limit in bytes. */
export const maxValues = (bodyLimit: number): number => bodyLimit / BYTES_PER_VALUE;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a JSON body. Invalid UTF-8, malformed JSON and JSON beyond the bounds give the same 400; of duplicate keys
 * the last one counts. The bounds keep the work for a body proportional to its size while its sender is unknown.
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

const [QUOTE, BACKSLASH, COMMA, LETTER_U] = [0x22, 0x5c, 0x2c, 0x75];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Scans the bytes of a JSON body once and returns an error message for the first exceeded bound. The result has no
 * meaning for bytes that are not JSON.
 */
function excessOf(raw: Uint8Array, values: number): string | undefined {
  let depth = 0;
  let seen = 0;
  for (let at = 0; at < raw.length; at++) {
    const byte = raw[at];
    if (byte === QUOTE) {
      const end = endOfString(raw, at + 1);
      if (end - at - 1 > MAX_TEXT_BYTES && bytesOfText(raw, at + 1, end) > MAX_TEXT_BYTES)
        return "The request body has a text that is too long.";
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

/** Returns the bytes in UTF-8 of the text of a JSON string. */
function bytesOfText(raw: Uint8Array, from: number, end: number): number {
  let bytes = end - from;
  for (let at = raw.indexOf(BACKSLASH, from); at !== -1 && at < end;) {
    const code = raw[at + 1] === LETTER_U ? hex(raw, at + 2) : undefined;
    const length = code === undefined ? 2 : 6;
    bytes -= length - bytesOfCode(code ?? 0);
    at = raw.indexOf(BACKSLASH, at + length);
  }
  return bytes;
}

const hex = (raw: Uint8Array, from: number) =>
  Number.parseInt(String.fromCharCode(...raw.subarray(from, from + 4)), 16);

/** Returns the bytes of a UTF-16 unit in UTF-8. Each half of a surrogate pair counts as two of its four. */
function bytesOfCode(code: number): number {
  if (code < 0x80) return 1;
  return code < 0x8_00 || (code >= 0xd8_00 && code < 0xe0_00) ? 2 : 3;
}

function endOfString(raw: Uint8Array, from: number): number {
  let at = from;
  while (at < raw.length && raw[at] !== QUOTE) at += raw[at] === BACKSLASH ? 2 : 1;
  return at;
}
