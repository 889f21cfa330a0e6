import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";

/** Consecutive lines of a file. */
export interface Chunk {
  /** The texts of the lines; undefined for a line that is not UTF-8. */
  readonly lines: readonly (string | undefined)[];
  /** The offset in bytes after the last line. */
  readonly end: number;
  /** The SHA-256 of the file up to that offset. */
  readonly digest: string;
  readonly isLast: boolean;
}

const NEWLINE = 0x0a;
const MAX_LINE_BYTES = 4_000_000;

/** Reads a file of lines in chunks of `size` lines, and holds no more than two chunks in memory. */
export class FileLines {
  readonly #path: string;
  readonly #size: number;

  constructor(path: string, size: number) {
    this.#path = path;
    this.#size = size;
  }

  /** Returns the SHA-256 of the first bytes of the file. */
  async digestOf(bytes: number): Promise<string> {
    return (await this.#hashed(bytes)).digest("hex");
  }

  /** Reads from an offset, at which a line begins. The last chunk may be empty. */
  async *chunks(from: number): AsyncGenerator<Chunk> {
    const hash = await this.#hashed(from);
    let end = from;
    let lines: (string | undefined)[] = [];
    const take = (isLast: boolean): Chunk => ({
      lines: lines.splice(0),
      end,
      digest: hash.copy().digest("hex"),
      isLast,
    });
    for await (const line of linesOf(createReadStream(this.#path, { start: from }))) {
      hash.update(line);
      end += line.length;
      lines.push(textOf(line));
      if (lines.length === this.#size) yield take(false);
    }
    yield take(true);
  }

  async #hashed(bytes: number): Promise<Hash> {
    const hash = createHash("sha256");
    if (bytes > 0)
      for await (const part of createReadStream(this.#path, { end: bytes - 1 })) hash.update(part);
    return hash;
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function textOf(line: Uint8Array): string | undefined {
  try {
    return utf8.decode(line).trim();
  } catch {
    return undefined;
  }
}

/** Cuts a stream of bytes after each newline. */
async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array();
  for await (const part of stream) {
    const bytes = rest.length === 0 ? part : Buffer.concat([rest, part]);
    let from = 0;
    for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, from)) {
      yield bytes.subarray(from, at + 1);
      from = at + 1;
    }
    rest = bytes.subarray(from);
    if (rest.length > MAX_LINE_BYTES)
      throw new Error(`A line of the file has more than ${MAX_LINE_BYTES} bytes.`);
  }
  if (rest.length > 0) yield rest;
}
