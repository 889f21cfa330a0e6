import type { WebhookTarget } from "../../src/lib/egress.ts";
import { memoize } from "../../src/lib/memoize.ts";
import { BodyRecord } from "./excerpt.ts";

const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
/**
 * Headers that only this file writes. If the caller could add a second copy, two parsers might read the same bytes as
 * two different requests.
 */
const OWN_HEADERS = /^(?:host|content-length|transfer-encoding|connection)$/i;

/**
 * Whether a header name is valid and not in `OWN_HEADERS`. The results are cached, because most names are ours, and
 * partners choose few others.
 */
const isName = memoize((name: string) => HEADER_NAME.test(name) && !OWN_HEADERS.test(name), 1_000);

/**
 * The length in characters from which a body is written separately. For shorter bodies one write for head and body is
 * faster.
 */
const SEPARATE_BODY_CHARS = 16 * 1024;

/**
 * Encodes head and body as one piece for a single write. A large body stays a separate piece, because joining would
 * copy it, and the copy would be in memory for as long as the request. Text stays text, because the socket encodes it
 * faster than a buffer can be made. Throws for invalid headers, which are a bug of ours.
 */
export function encodeRequest(
  target: WebhookTarget,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array,
): readonly (string | Uint8Array)[] {
  const bytes = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  let head = `POST ${target.path} HTTP/1.1\r\nHost: ${target.authority}\r\n`;
  for (const name in headers) {
    const value = headers[name] ?? "";
    if (!isName(name) || !HEADER_VALUE.test(value))
      throw new TypeError(`request header ${JSON.stringify(name)} cannot be sent`);
    head += `${name}: ${value}\r\n`;
  }
  head += `Content-Length: ${bytes}\r\n\r\n`;
  if (body.length >= SEPARATE_BODY_CHARS) return [head, body];
  if (typeof body === "string") return [head + body];
  return [Buffer.concat([Buffer.from(head), body])];
}

/**
 * The most bytes of all heads of one response, interim ones included; trailers may have as many again (contract 7.10).
 */
export const MAX_HEAD_BYTES = 16 * 1024;
/** The longest size line of a chunk with its extensions (our choice). */
export const MAX_CHUNK_LINE_BYTES = 1024;
/** The most response heads that are cached (our choice): at 16 KiB each they take 16 MB. */
const MAX_HEADS_KEPT = 1_000;

const BAD_CHUNK = "the response's body has a malformed chunk";
const HEAD_END = Buffer.from("\r\n\r\n");
const EMPTY_BUFFER = Buffer.alloc(0);
/** The body of every response until its head has arrived. Nothing is ever pushed into it. */
const NO_BODY = new BodyRecord({});

/**
 * The pattern of a header line: a name, and a value without the spaces and tabs around it. trim() would also remove
 * bytes that another parser counts as part of the value. The greedy `.*` keeps the time of a match linear.
 */
const HEADER_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*[^ \t])?[ \t]*$/s;
const FORBIDDEN_IN_LINE = /[\0\r\n]/;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [^\0\r\n]*)?$/;
const KEEP_ALIVE_TIMEOUT = /(?:^|[,\s])timeout\s*=\s*"?(\d{1,9})/i;
const CLOSE_OPTION = /(?:^|,)\s*close\s*(?:,|$)/i;
/** The pattern of a Content-Length. The limit of 15 digits keeps the number exact in a double. */
const CONTENT_LENGTH = /^\d{1,15}$/;
/**
 * The pattern of the size line of a chunk. The limit is eight hex digits: a chunk of 4 GiB is far beyond the part of
 * a body that is read.
 */
const CHUNK_SIZE = /^([0-9A-Fa-f]{1,8})(?:[ \t]*;[^\0\r\n]*)?$/;

/**
 * The way to find the end of the body (RFC 9112, 6.3): after a number of bytes, by its chunks, or at the close of the
 * connection. `problem`: the end cannot be found.
 */
type BodyFraming = number | "chunked" | "until_close" | { readonly problem: string };

export interface ResponseHead {
  readonly statusCode: number;
  /** The response headers under lower-case names; the values of repeated headers are joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly framing: BodyFraming;
  /** Whether the receiver allows another request on the connection. */
  readonly keepAlive: boolean;
  /** The time in milliseconds that the connection may idle: a second less than the receiver allows, for the network. */
  readonly keptForMs: number;
}

/**
 * The part of the response that is expected next. `data` is a part of the body; `data_end` is the empty line after a
 * chunk.
 */
type ParserState = "head" | "data" | "size" | "data_end" | "trailer" | "complete" | "invalid";

/** Parses one response as it arrives, in any pieces. The status is decided once the final head is complete. */
export class ResponseParser {
  state: ParserState = "head";
  head: ResponseHead | undefined;
  body: BodyRecord = NO_BODY;
  /** The reason for the state `invalid`. */
  problem = "";
  /** True if bytes arrived after the end of the response. */
  hasExcess = false;
  readonly #isToConnect: boolean;
  /** The received beginning of an incomplete response head. */
  #pending: Buffer = EMPTY_BUFFER;
  #headBytes = 0;
  /** The number of bytes that are left of the body or of its current chunk. */
  #left = 0;
  /** The received beginning of an incomplete line of the chunked coding. */
  #line = "";
  #trailerBytes = 0;

  /**
   * `isToConnect`: the request was CONNECT. Its response has no body, and fields about a body are ignored (RFC 9110,
   * 9.3.6).
   */
  constructor(isToConnect = false) {
    this.#isToConnect = isToConnect;
  }

  /**
   * Whether another request may follow on the connection: all bytes of the response were read, and no other bytes
   * arrived.
   */
  get isReusable(): boolean {
    if (this.state !== "complete" || this.hasExcess || this.body.cut) return false;
    return this.head !== undefined && this.head.keepAlive;
  }

  feed(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.state === "head") at = this.#readHead(chunk, at);
      else if (this.state === "data") at = this.#readData(chunk, at);
      else if (this.state === "complete" || this.state === "invalid") break;
      else at = this.#readLine(chunk, at);
    }
    if (at < chunk.length) this.hasExcess = true;
  }

  /**
   * Notes that the receiver has closed the connection. That ends a body without a length, and cuts any other body
   * short.
   */
  end(): void {
    if (this.head === undefined || this.state === "complete" || this.state === "invalid") return;
    if (this.head.framing !== "until_close") this.body.cut = true;
    this.state = "complete";
    this.hasExcess = true;
  }

  /** Ends the response before its body is complete. */
  cut(): void {
    this.body.cut = true;
    this.state = "complete";
  }

  /**
   * Parses one response head and returns the byte position after it. If the head is incomplete, keeps the bytes until
   * more arrive.
   */
  #readHead(chunk: Buffer, from: number): number {
    const seen = this.#pending.length;
    const bytes = seen + from === 0 ? chunk : Buffer.concat([this.#pending, chunk.subarray(from)]);
    const end = bytes.indexOf(HEAD_END, Math.max(0, seen - HEAD_END.length + 1));
    const size = end === -1 ? bytes.length : end + HEAD_END.length;
    const behind = from + size - seen;
    this.#pending = end === -1 ? bytes : EMPTY_BUFFER;
    if (this.#headBytes + size > MAX_HEAD_BYTES)
      return this.#fail(`the response's headers are over ${MAX_HEAD_BYTES} bytes`, behind);
    if (end === -1) {
      // Fails now: otherwise the client would wait until the deadline for a receiver that ends lines with LF only.
      if (bytes.includes("\n\n", Math.max(0, seen - 1)))
        this.#fail("the response has a line without CR", behind);
      return behind;
    }
    this.#headBytes += size;
    const head = headOf(bytes.toString("latin1", 0, end));
    if (typeof head === "string") return this.#fail(head, behind);
    if (head.statusCode === 101)
      return this.#fail("the response switches protocols unasked", behind);
    if (head.statusCode < 200) return behind;
    const framing = this.#isToConnect ? 0 : head.framing;
    if (typeof framing === "object") return this.#fail(framing.problem, behind);
    this.head = head;
    this.body = new BodyRecord(head.headers);
    this.#left = typeof framing === "number" ? framing : Number.POSITIVE_INFINITY;
    this.state = this.#left === 0 ? "complete" : "data";
    if (framing === "chunked") this.state = "size";
    return behind;
  }

  #readData(chunk: Buffer, from: number): number {
    const end = Math.min(chunk.length, from + this.#left);
    this.#left -= end - from;
    this.body.push(chunk.subarray(from, end));
    if (this.body.cut) this.state = "complete";
    else if (this.#left === 0)
      this.state = this.head?.framing === "chunked" ? "data_end" : "complete";
    return end;
  }

  /** Parses a line of the chunked coding (RFC 9112, 7.1). */
  #readLine(chunk: Buffer, from: number): number {
    const newline = chunk.indexOf(0x0a, from);
    const end = newline === -1 ? chunk.length : newline + 1;
    // Limits the line with its CR LF, so that an endless line is not collected.
    const room = MAX_CHUNK_LINE_BYTES + 2 - this.#line.length;
    if (end - from > room) return this.#fail(BAD_CHUNK, end);
    this.#line += chunk.toString("latin1", from, end);
    if (newline === -1) return end;
    const line = this.#line;
    this.#line = "";
    const next = line.endsWith("\r\n") ? this.#behindLine(line.slice(0, -2)) : undefined;
    if (next === undefined) return this.#fail(BAD_CHUNK, end);
    this.state = next;
    return end;
  }

  /** Returns the state after a line; undefined for a malformed line. */
  #behindLine(line: string): ParserState | undefined {
    if (this.state === "data_end") return line === "" ? "size" : undefined;
    if (this.state === "trailer") {
      this.#trailerBytes += line.length + 2;
      if (this.#trailerBytes > MAX_HEAD_BYTES) return undefined;
      return line === "" ? "complete" : "trailer";
    }
    const size = CHUNK_SIZE.exec(line)?.[1];
    if (size === undefined) return undefined;
    this.#left = Number.parseInt(size, 16);
    return this.#left === 0 ? "trailer" : "data";
  }

  /** Makes the response invalid, and returns `behind`, the byte position after the fault. */
  #fail(problem: string, behind: number): number {
    this.state = "invalid";
    this.problem = problem;
    return behind;
  }
}

/**
 * Parses the text of one complete response head, without its last blank line. Returns an error message if the text is
 * not HTTP. The function is stricter than RFC 9112 where two parsers could disagree: no folded lines, no bare CR or
 * LF, no repeated Content-Length, no transfer coding other than chunked.
 */
function parseHead(text: string): ResponseHead | string {
  const [statusLine = "", ...lines] = text.split("\r\n");
  const status = STATUS_LINE.exec(statusLine);
  if (status === null) return "the response does not start with an HTTP/1 status line";
  const headers: Record<string, string> = Object.create(null);
  for (const line of lines) {
    const [, written, value = ""] = HEADER_LINE.exec(line) ?? [];
    if (written === undefined) return "the response has a malformed header line";
    if (FORBIDDEN_IN_LINE.test(line)) return "the response has a control character in a header";
    const name = written.toLowerCase();
    const earlier = headers[name];
    headers[name] = earlier === undefined ? value : `${earlier}, ${value}`;
  }
  const statusCode = Number(status[2]);
  const framing = decideFraming(statusCode, status[1] === "1", headers);
  const keepAlive = status[1] === "1" && !CLOSE_OPTION.test(headers["connection"] ?? "");
  const keptForS = Number(KEEP_ALIVE_TIMEOUT.exec(headers["keep-alive"] ?? "")?.[1] ?? Infinity);
  return { statusCode, headers, framing, keepAlive, keptForMs: (keptForS - 1) * 1_000 };
}

function decideFraming(
  statusCode: number,
  isHttp11: boolean,
  headers: Record<string, string>,
): BodyFraming {
  const coding = headers["transfer-encoding"];
  const length = headers["content-length"];
  if (coding !== undefined) {
    if (length !== undefined)
      return { problem: "the response has both Content-Length and Transfer-Encoding" };
    if (!isHttp11 || coding.toLowerCase() !== "chunked")
      return { problem: "the response has an unknown Transfer-Encoding" };
  }
  // The values of a repeated Content-Length are joined by a comma, so this pattern rejects them, whether equal or
  // not.
  if (length !== undefined && !CONTENT_LENGTH.test(length))
    return { problem: "the response has a bad Content-Length" };
  if (statusCode < 200 || statusCode === 204 || statusCode === 304) return 0;
  if (coding !== undefined) return "chunked";
  return length === undefined ? "until_close" : Number(length);
}

/**
 * Parses response heads. The results are cached, because most receivers repeat their head at least while `Date` stays
 * the same.
 */
const headOf = memoize(parseHead, MAX_HEADS_KEPT);
