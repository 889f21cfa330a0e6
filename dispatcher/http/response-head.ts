/** How the end of the body is found (RFC 9112, 6.3): after so many bytes, by its chunks, or when the receiver closes. */
type BodyFraming = number | "chunked" | "until_close";

export interface ResponseHead {
  readonly statusCode: number;
  /** Lower-case names; repeated fields joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly framing: BodyFraming;
  /** Whether the receiver lets the connection serve another request. */
  readonly keepAlive: boolean;
  /** How long the connection may idle before that: a second less than the receiver says, for the way. */
  readonly keptForMs: number;
}

/** It has no capitals, because names are lower-cased before the test. */
const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const FORBIDDEN_IN_LINE = /[\0\r\n]/;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [^\0\r\n]*)?$/;
const KEPT_FOR = /(?:^|[,\s])timeout\s*=\s*"?(\d{1,9})/i;
/** At most 15 digits, which stay exact in a double. */
const LENGTH = /^\d{1,15}$/;

/**
 * Reads the text of one complete head, without its last blank line. Returns the reason as a string
 * where it is not HTTP. Stricter than RFC 9112 obliges where two readers could disagree: no folded
 * lines, no bare CR or LF, no repeated Content-Length, no transfer coding other than chunked.
 */
function parseHead(text: string): ResponseHead | string {
  let end = lineEnd(text, 0);
  const status = STATUS_LINE.exec(text.slice(0, end));
  if (status === null) return "the answer does not start with an HTTP/1 status line";
  const headers: Record<string, string> = Object.create(null);
  while (end < text.length) {
    const start = end + 2;
    end = lineEnd(text, start);
    const problem = readField(text.slice(start, end), headers);
    if (problem !== undefined) return problem;
  }
  const statusCode = Number(status[2]);
  const framing = decideFraming(statusCode, status[1] === "1", headers);
  if (typeof framing === "object") return framing.problem;
  const keepAlive = status[1] === "1" && !hasClose(headers["connection"]);
  return { statusCode, headers, framing, keepAlive, keptForMs: keptFor(headers["keep-alive"]) };
}

/** Remembers the last head of a connection: most receivers repeat theirs, at least for the second in which `Date` stays. */
export class HeadReader {
  #text: string | undefined;
  #head: ResponseHead | string = "";

  /** As `parseHead`. */
  read(text: string): ResponseHead | string {
    if (text !== this.#text) {
      this.#head = parseHead(text);
      this.#text = text;
    }
    return this.#head;
  }
}

/** The status alone, or undefined where the text does not begin as HTTP does. */
export function readStatus(text: string): number | undefined {
  const status = STATUS_LINE.exec(text.slice(0, lineEnd(text, 0)));
  return status === null ? undefined : Number(status[2]);
}

/** Whether a line ends with LF alone. It looks only at the bytes from there on and the one before them. */
export function hasBareNewline(bytes: Buffer, from: number): boolean {
  let at = bytes.indexOf(0x0a, from);
  while (at !== -1) {
    if (at === 0 || bytes[at - 1] !== 0x0d) return true;
    at = bytes.indexOf(0x0a, at + 1);
  }
  return false;
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf("\r\n", from);
  return end === -1 ? text.length : end;
}

function readField(line: string, headers: Record<string, string>): string | undefined {
  const colon = line.indexOf(":");
  const name = line.slice(0, Math.max(colon, 0)).toLowerCase();
  if (!FIELD_NAME.test(name)) return "the answer has a malformed header line";
  if (FORBIDDEN_IN_LINE.test(line)) return "the answer has a control character in a header";
  const value = trimField(line, colon + 1);
  const earlier = headers[name];
  headers[name] = earlier === undefined ? value : `${earlier}, ${value}`;
  return undefined;
}

/** Trims spaces and tabs only: trim() would also take bytes that another reader counts to the value. */
function trimField(line: string, from: number): string {
  let start = from;
  let end = line.length;
  while (start < end && isBlank(line.charCodeAt(start))) start++;
  while (end > start && isBlank(line.charCodeAt(end - 1))) end--;
  return line.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function decideFraming(
  statusCode: number,
  isHttp11: boolean,
  headers: Record<string, string>,
): BodyFraming | { readonly problem: string } {
  const coding = headers["transfer-encoding"];
  const length = headers["content-length"];
  if (coding !== undefined) {
    if (length !== undefined)
      return { problem: "the answer has both Content-Length and Transfer-Encoding" };
    if (!isHttp11 || coding.toLowerCase() !== "chunked")
      return { problem: "the answer has an unknown Transfer-Encoding" };
  }
  // A repeated length arrives here joined by a comma, equal or not.
  if (length !== undefined && !LENGTH.test(length))
    return { problem: "the answer has a bad Content-Length" };
  if (statusCode < 200 || statusCode === 204 || statusCode === 304) return 0;
  if (coding !== undefined) return "chunked";
  return length === undefined ? "until_close" : Number(length);
}

function keptFor(keepAlive: string | undefined): number {
  const seconds = keepAlive === undefined ? undefined : KEPT_FOR.exec(keepAlive)?.[1];
  return seconds === undefined ? Number.POSITIVE_INFINITY : (Number(seconds) - 1) * 1_000;
}

function hasClose(connection: string | undefined): boolean {
  if (connection === undefined) return false;
  return connection
    .toLowerCase()
    .split(",")
    .some((option) => option.trim() === "close");
}
