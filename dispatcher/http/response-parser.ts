import { ChunkedDecoder } from "./chunked.ts";
import { BodyRecord } from "./excerpt.ts";
import { hasBareNewline, type HeadReader, type ResponseHead } from "./response-head.ts";

/** How long all heads of one answer may be together, interim ones included; trailers as much again (contract 7.10). */
export const MAX_HEAD_BYTES = 16 * 1024;

const HEAD_END = Buffer.from("\r\n\r\n");
const EMPTY = Buffer.alloc(0);
/** The body of every answer that has no head yet; nothing is ever pushed into it. */
const NO_BODY = new BodyRecord({});

export type ParserState = "head" | "body" | "complete" | "invalid";

/** Reads one answer as it arrives. Once the final head is complete, the answer's status is decided. */
export class ResponseParser {
  state: ParserState = "head";
  head: ResponseHead | undefined;
  body: BodyRecord = NO_BODY;
  /** Why the state is `invalid`. */
  problem = "";
  #pending: Buffer = EMPTY;
  #headBytes = 0;
  #bodyLeft = 0;
  #chunked: ChunkedDecoder | undefined;
  #excess = false;

  /** Whether another request may follow on the connection: nothing is unread, and nothing came unasked. */
  get isReusable(): boolean {
    if (this.state !== "complete" || this.#excess || this.body.cut) return false;
    return this.head !== undefined && this.head.keepAlive;
  }

  /** Takes the next bytes; `heads` is the reader of the connection. */
  feed(chunk: Buffer, heads: HeadReader): void {
    let rest = chunk;
    while (this.state === "head" && rest.length > 0) rest = this.#feedHead(rest, heads);
    if (this.state === "body") this.#feedBody(rest);
    else if (this.state === "complete" && rest.length > 0) this.#excess = true;
  }

  /** The receiver has closed. That ends a body without a length, and cuts any other. */
  end(): void {
    if (this.state !== "body") return;
    if (this.head?.framing !== "until_close") this.body.cut = true;
    this.state = "complete";
    this.#excess = true;
  }

  /** Stops reading where it is. */
  cut(): void {
    this.body.cut = true;
    this.state = "complete";
  }

  /** Consumes one head and returns what follows it, or keeps what there is until more comes. */
  #feedHead(chunk: Buffer, heads: HeadReader): Buffer {
    const seen = this.#pending.length;
    const bytes = seen === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    const at = bytes.indexOf(HEAD_END, Math.max(0, seen - HEAD_END.length + 1));
    const size = at === -1 ? bytes.length : at + HEAD_END.length;
    if (this.#headBytes + size > MAX_HEAD_BYTES)
      return this.#fail(`the answer's headers are over ${MAX_HEAD_BYTES} bytes`);
    if (at === -1) {
      // Otherwise we would wait until the deadline for a receiver that ends its lines with LF alone.
      if (hasBareNewline(bytes, seen)) return this.#fail("the answer has a line without CR");
      this.#pending = bytes;
      return EMPTY;
    }
    this.#pending = EMPTY;
    this.#headBytes += size;
    const head = heads.read(bytes.toString("latin1", 0, at));
    if (typeof head === "string") return this.#fail(head);
    if (head.statusCode === 101) return this.#fail("the answer switches protocols unasked");
    if (head.statusCode >= 200) this.#begin(head);
    return size === bytes.length ? EMPTY : bytes.subarray(size);
  }

  #begin(head: ResponseHead): void {
    this.head = head;
    const { framing } = head;
    this.body = new BodyRecord(head.headers);
    this.state = framing === 0 ? "complete" : "body";
    if (typeof framing === "number") this.#bodyLeft = framing;
    if (framing === "chunked")
      this.#chunked = new ChunkedDecoder(MAX_HEAD_BYTES, (data) => this.body.push(data));
  }

  #feedBody(chunk: Buffer): void {
    let used = chunk.length;
    if (this.#chunked !== undefined) {
      used = this.#chunked.feed(chunk, 0);
      if (this.#chunked.state === "done") this.state = "complete";
      if (this.#chunked.state === "invalid") this.#fail("the answer's body has a malformed chunk");
    } else if (typeof this.head?.framing === "number") {
      used = Math.min(chunk.length, this.#bodyLeft);
      this.#bodyLeft -= used;
      this.body.push(used === chunk.length ? chunk : chunk.subarray(0, used));
      if (this.#bodyLeft === 0) this.state = "complete";
    } else {
      this.body.push(chunk);
    }
    if (used < chunk.length) this.#excess = true;
    if (this.body.cut && this.state === "body") this.state = "complete";
  }

  #fail(problem: string): Buffer {
    this.state = "invalid";
    this.problem = problem;
    return EMPTY;
  }
}
