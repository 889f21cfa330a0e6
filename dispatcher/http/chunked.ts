/** How long the line of a chunk's size may be with its extensions; nobody needs more (our choice). */
export const MAX_CHUNK_LINE_BYTES = 1024;

/** At most eight hex digits: a chunk of 4 GiB is far beyond what is read anyway. */
const CHUNK_SIZE = /^([0-9A-Fa-f]{1,8})(?:[ \t]*;[^\0\r\n]*)?$/;

type Expected = "size" | "data" | "data_end" | "trailer" | "done" | "invalid";

/** Takes the chunks of RFC 9112, 7.1 apart, across any cuts the network makes. */
export class ChunkedDecoder {
  #expected: Expected = "size";
  #left = 0;
  /** The beginning of a line whose end has not come yet. */
  #line = "";
  #trailerBytes = 0;
  readonly #maxTrailerBytes: number;
  readonly #onData: (data: Buffer) => void;

  constructor(maxTrailerBytes: number, onData: (data: Buffer) => void) {
    this.#maxTrailerBytes = maxTrailerBytes;
    this.#onData = onData;
  }

  get state(): "open" | "done" | "invalid" {
    if (this.#expected === "done" || this.#expected === "invalid") return this.#expected;
    return "open";
  }

  /** Returns the offset behind the last byte used. */
  feed(chunk: Buffer, from: number): number {
    let at = from;
    while (at < chunk.length && this.state === "open") {
      if (this.#expected === "data") at = this.#takeData(chunk, at);
      else at = this.#takeLine(chunk, at);
    }
    return at;
  }

  #takeData(chunk: Buffer, from: number): number {
    const end = Math.min(chunk.length, from + this.#left);
    this.#left -= end - from;
    if (this.#left === 0) this.#expected = "data_end";
    this.#onData(chunk.subarray(from, end));
    return end;
  }

  #takeLine(chunk: Buffer, from: number): number {
    const newline = chunk.indexOf(0x0a, from);
    const end = newline === -1 ? chunk.length : newline + 1;
    // The longest line allowed and its CR LF, so that an endless line is never gathered.
    const room = MAX_CHUNK_LINE_BYTES + 2 - this.#line.length;
    if (end - from > room) {
      this.#expected = "invalid";
      return end;
    }
    this.#line += chunk.toString("latin1", from, end);
    if (newline === -1) return end;
    const line = this.#line;
    this.#line = "";
    if (line.endsWith("\r\n")) this.#expected = this.#afterLine(line.slice(0, -2));
    else this.#expected = "invalid";
    return end;
  }

  #afterLine(line: string): Expected {
    if (this.#expected === "data_end") return line === "" ? "size" : "invalid";
    if (this.#expected === "trailer") {
      this.#trailerBytes += line.length + 2;
      if (this.#trailerBytes > this.#maxTrailerBytes) return "invalid";
      return line === "" ? "done" : "trailer";
    }
    const size = CHUNK_SIZE.exec(line)?.[1];
    if (size === undefined) return "invalid";
    this.#left = Number.parseInt(size, 16);
    return this.#left === 0 ? "trailer" : "data";
  }
}
