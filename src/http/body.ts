import { networksOf } from "../lib/network.ts";
import { Problem } from "../lib/problem.ts";

/** Limit of a request body in bytes. A larger body gets the status 413 (contract 2.7). */
export const BODY_LIMIT = 64 * 1024;

/** The size in bytes from which parsing a body takes milliseconds. */
export const LARGE_BODY = 8 * 1024;

/** Limit in bytes for all bodies together that a process holds and does not work on yet (contract 2.7). */
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

/** The body of a request, which counts towards the memory limits until `release`. */
export interface RequestBody {
  readonly bytes: Uint8Array;
  /** Begins the work on the body of a verified sender. A large body waits for its turn, in the order of the calls. */
  begin(): Promise<void>;
  /** Called when the request is answered; further calls do nothing. */
  release(): void;
}

export const NO_BODY: RequestBody = {
  bytes: new Uint8Array(),
  begin: async () => {},
  release: () => {},
};

/**
 * Reads request bodies and limits their memory. A body is held until its sender is verified and the work on it begins.
 * Beyond the limit, the network that uses the most bytes loses its newest body that still arrives or waits for its turn,
 * with a 503. So a flood of bodies loses its own, and small bodies from other networks are read. Bun closes a
 * connection whose body does not arrive for half a minute, which ends the reading here; single bytes do not prolong
 * this time.
 */
export class RequestBodies {
  readonly #limit: number;
  /** Bodies that are not worked on yet, in the order in which their first bytes arrived. */
  readonly #held = new Set<Received>();
  /** Those of them that wait for their turn. */
  readonly #waiting = new Set<Received>();
  /** The large bodies that are worked on. */
  readonly #worked = new Set<Received>();
  #heldBytes = 0;
  #workedBytes = 0;

  constructor(limit = HELD_BYTES) {
    this.#limit = limit;
  }

  async #begin(body: Received): Promise<void> {
    if (body.bytes < LARGE_BODY) return this.#release(body);
    this.#waiting.add(body);
    this.#startWaiting();
    await body.begun;
  }

  #startWaiting(): void {
    for (const body of this.#waiting) {
      if (this.#workedBytes >= WORKED_BYTES) return;
      this.#waiting.delete(body);
      this.#letGo(body);
      this.#worked.add(body);
      this.#workedBytes += body.bytes;
      body.start();
    }
  }

  /**
   * Reads a body of up to `limit` bytes. A larger body gives a 413, and its rest is not read. Large bodies are
   * returned one per turn of the event loop.
   */
  async read(request: Request, options: ReadOptions): Promise<RequestBody> {
    const { limit, from, isDiscarded = false } = options;
    const declared = request.headers.get("content-length");
    const size = Number(declared ?? Infinity);
    // Reading the bytes of a request costs a tenth of a stream over its body, which the property `body` makes.
    const isSmall = size < LARGE_BODY && size <= limit;
    if (!isSmall && request.body === null) return NO_BODY;
    if (size > limit && declared !== null) throw new Problem("payload_too_large");
    if (isDiscarded && declared !== null) return NO_BODY;
    const reader = isSmall ? undefined : request.body?.getReader();
    const body = new Received(from, reader);
    this.#held.add(body);
    try {
      const bytes =
        reader === undefined
          ? await this.#readSmall(body, request, size)
          : await this.#readAll(body, reader, { limit, isDiscarded });
      return { bytes, begin: () => this.#begin(body), release: () => this.#release(body) };
    } catch (error) {
      this.#release(body);
      body.stop();
      throw error;
    }
  }

  /** Reads a small body. Its declared size counts towards the memory limit before its bytes arrive. */
  async #readSmall(body: Received, request: Request, size: number): Promise<Uint8Array> {
    this.#hold(body, size);
    const bytes = await body.unlessStopped(request.bytes());
    body.isRead = true;
    return bytes;
  }

  async #readAll(
    body: Received,
    reader: Reader,
    { limit, isDiscarded }: { readonly limit: number; readonly isDiscarded: boolean },
  ): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const { done, value } = await body.unlessStopped(reader.read());
      if (done) break;
      size += value.byteLength;
      if (size > limit) throw new Problem("payload_too_large");
      if (isDiscarded) continue;
      this.#hold(body, value.byteLength);
      chunks.push(value);
    }
    body.isRead = true;
    if (size >= LARGE_BODY) await nextTurn();
    const [first] = chunks;
    return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
  }

  #hold(body: Received, bytes: number): void {
    body.bytes += bytes;
    this.#heldBytes += bytes;
    while (this.#heldBytes > this.#limit) {
      const victim = this.#newestOfLargestNetwork();
      const problem = new Problem("overloaded", {
        headers: { "Retry-After": String(RETRY_AFTER_S) },
      });
      if (victim === undefined || victim === body) throw problem;
      this.#release(victim);
      victim.stop(problem);
    }
  }

  #release(body: Received): void {
    this.#letGo(body);
    this.#waiting.delete(body);
    if (!this.#worked.delete(body)) return;
    this.#workedBytes -= body.bytes;
    this.#startWaiting();
  }

  #letGo(body: Received): void {
    if (this.#held.delete(body)) this.#heldBytes -= body.bytes;
  }

  /** Returns the newest body that may be stopped, of that network whose bodies use the most bytes. */
  #newestOfLargestNetwork(): Received | undefined {
    const networks = new Map<string, { bytes: number; newest: Received | undefined }>();
    for (const one of this.#held) {
      const { bytes = 0, newest } = networks.get(one.network) ?? {};
      const mayStop = this.#waiting.has(one) || (!one.isRead && one.bytes > 0);
      networks.set(one.network, { bytes: bytes + one.bytes, newest: mayStop ? one : newest });
    }
    const [largest] = [...networks.values()]
      .filter(({ newest }) => newest !== undefined)
      .toSorted((a, b) => b.bytes - a.bytes);
    return largest?.newest;
  }
}

type Reader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel">;

/** A request body from the start of its reading until the request is answered. */
class Received {
  /** The widest network of the sender's address: an IPv6 /48, or an IPv4 address. */
  readonly network: string;
  bytes = 0;
  isRead = false;
  readonly #reader: Reader | undefined;
  /** Rejects when the body is stopped. */
  readonly #stopped = Promise.withResolvers<never>();
  readonly #begun = Promise.withResolvers<void>();

  constructor(from: string, reader: Reader | undefined) {
    this.network = networksOf(from)[0] ?? from;
    this.#reader = reader;
    this.#stopped.promise.catch(() => {});
  }

  /** Resolves when the work on the body begins. If the body is stopped before, it rejects with the error of `stop`. */
  get begun(): Promise<void> {
    return Promise.race([this.#stopped.promise, this.#begun.promise]);
  }

  start(): void {
    this.#begun.resolve();
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

  /** Stops reading the body, or its wait; a pending read ends immediately. */
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
