import { networksOf } from "../lib/network.ts";
import { Problem } from "../lib/problem.ts";

/** Limit of a request body in bytes. A larger body gets the status 413 (contract 2.7). */
export const BODY_LIMIT = 64 * 1024;

/** Size in bytes from which a body counts as large, because parsing it takes milliseconds. */
export const LARGE_BODY = 8 * 1024;

/** Limit in bytes for all bodies together whose processing has not begun (contract 2.7). */
const HELD_BYTES = 64 * 1024 * 1024;
const RETRY_AFTER_S = 5;
/**
 * Limit in bytes for all large bodies together that are being processed (contract 2.7). Parsing, validating and writing
 * a body of 1 MiB takes up to 20 MiB of memory, so these bodies take up to 160 MiB.
 */
const PROCESSED_BYTES = 8 * 1024 * 1024;

export interface ReadOptions {
  /** The network address of the sender. */
  readonly from: string;
  /** The limit of the body in bytes. */
  readonly limit: number;
  /** Whether only the size is checked. The bytes are then discarded, and a body with a declared size is not read. */
  readonly isDiscarded?: boolean;
}

/** The body of a request, which counts towards the memory limits until `release`. */
export interface RequestBody {
  readonly bytes: Uint8Array;
  /**
   * Begins the processing of the body, after its sender was verified. Large bodies wait for their turn, in the order of
   * the calls.
   */
  begin(): Promise<void>;
  /** Ends the processing when the request is answered. Further calls do nothing. */
  release(): void;
}

export const NO_BODY: RequestBody = {
  bytes: new Uint8Array(),
  begin: async () => {},
  release: () => {},
};

/**
 * Reads request bodies and limits their memory.
 *
 * A body counts as held until its sender is verified and its processing begins. If the held bodies exceed the limit,
 * the network with the most bytes loses its newest body that still arrives or waits, with a 503. So a flood of bodies
 * harms only its own network, and small bodies from other networks are read.
 *
 * Bun closes a connection whose body does not arrive within 30 s, which ends the reading here. Single bytes do not
 * prolong this time.
 */
export class RequestBodies {
  readonly #limit: number;
  /** Bodies whose processing has not begun, in the order in which their first bytes arrived. */
  readonly #held = new Set<ReceivedBody>();
  /** Held bodies that are completely read and wait for their turn. */
  readonly #waiting = new Set<ReceivedBody>();
  /** Large bodies that are being processed. */
  readonly #worked = new Set<ReceivedBody>();
  #heldBytes = 0;
  #workedBytes = 0;

  constructor(limit = HELD_BYTES) {
    this.#limit = limit;
  }

  async #begin(body: ReceivedBody): Promise<void> {
    if (body.bytes < LARGE_BODY) return this.#release(body);
    this.#waiting.add(body);
    this.#startWaiting();
    await body.begun;
  }

  #startWaiting(): void {
    for (const body of this.#waiting) {
      if (this.#workedBytes >= PROCESSED_BYTES) return;
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
    // A small body is read with `request.bytes()`, which takes a tenth of the time of a stream. The property
    // `request.body` is avoided for it, because reading that would create a stream.
    const isSmall = size < LARGE_BODY && size <= limit;
    if (!isSmall && request.body === null) return NO_BODY;
    if (size > limit && declared !== null) throw new Problem("payload_too_large");
    if (isDiscarded && declared !== null) return NO_BODY;
    const reader = isSmall ? undefined : request.body?.getReader();
    const body = new ReceivedBody(from, reader);
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
  async #readSmall(body: ReceivedBody, request: Request, size: number): Promise<Uint8Array> {
    this.#hold(body, size);
    const bytes = await body.unlessStopped(request.bytes());
    body.isRead = true;
    return bytes;
  }

  async #readAll(
    body: ReceivedBody,
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

  #hold(body: ReceivedBody, bytes: number): void {
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

  #release(body: ReceivedBody): void {
    this.#letGo(body);
    this.#waiting.delete(body);
    if (!this.#worked.delete(body)) return;
    this.#workedBytes -= body.bytes;
    this.#startWaiting();
  }

  #letGo(body: ReceivedBody): void {
    if (this.#held.delete(body)) this.#heldBytes -= body.bytes;
  }

  /** Returns the newest body that may be stopped, from the network whose bodies use the most bytes. */
  #newestOfLargestNetwork(): ReceivedBody | undefined {
    const networks = new Map<string, { bytes: number; newest: ReceivedBody | undefined }>();
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
class ReceivedBody {
  /** The largest network of the sender's address for limits: an IPv6 /48, or an IPv4 address. */
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

  /**
   * Resolves when the processing of the body begins. If the body is stopped first, it rejects with the error of `stop`.
   */
  get begun(): Promise<void> {
    return Promise.race([this.#stopped.promise, this.#begun.promise]);
  }

  start(): void {
    this.#begun.resolve();
  }

  /** Waits for bytes of the body. If the body is stopped before they arrive, it throws the error of `stop`. */
  unlessStopped<T>(bytes: Promise<T>): Promise<T> {
    const read = bytes.catch(() => {
      // The client disconnected or sent invalid HTTP, and its connection is closed. The response reports an error of
      // the client, because the server has not failed.
      throw new Problem("invalid_json", { message: "The request body ended early." });
    });
    return Promise.race([this.#stopped.promise, read]);
  }

  /** Stops reading the body, or its wait for processing. A pending read ends immediately. */
  stop(problem?: Problem): void {
    if (problem !== undefined) this.#stopped.reject(problem);
    void this.#reader?.cancel().catch(() => {});
  }
}

let turn = Promise.resolve();

/**
 * Resolves one call per turn of the event loop, in the order of the calls. Parsing a large body blocks the event loop,
 * so another request waits for at most one large body, however many arrive at the same time.
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
/**
 * Maximum length of a text in bytes of UTF-8, after unescaping. The texts of an action that a service records have the
 * same limit (contract 9.7).
 */
export const MAX_TEXT_BYTES = 256 * 1024;
/** A JSON body may contain one value per this number of bytes of its limit. Every valid body has fewer values. */
const BYTES_PER_VALUE = 64;

/** Returns the highest number of values, in arrays and objects, of a JSON body with this limit in bytes. */
export const maxValues = (bodyLimit: number): number => bodyLimit / BYTES_PER_VALUE;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a JSON body. Invalid UTF-8, malformed JSON, and JSON that exceeds a bound give the same 400. Of duplicate keys
 * the last one counts. Because of the bounds, the work for a body is proportional to its size even while its sender is
 * not verified.
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

/** Returns the length in UTF-8 bytes of the text of a JSON string. */
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

/**
 * Returns the length in UTF-8 bytes of a UTF-16 code unit. Each half of a surrogate pair counts as two of the pair's
 * four bytes.
 */
function bytesOfCode(code: number): number {
  if (code < 0x80) return 1;
  return code < 0x8_00 || (code >= 0xd8_00 && code < 0xe0_00) ? 2 : 3;
}

function endOfString(raw: Uint8Array, from: number): number {
  let at = from;
  while (at < raw.length && raw[at] !== QUOTE) at += raw[at] === BACKSLASH ? 2 : 1;
  return at;
}
