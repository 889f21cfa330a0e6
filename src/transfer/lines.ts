import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";

/** The text of a line, or why it cannot be read. */
export type FileLine = string | { readonly fault: string };

/** Consecutive lines of a file. */
export interface Chunk {
  readonly lines: readonly FileLine[];
  /** The offset in bytes after the last line. */
  readonly end: number;
  /** The SHA-256 of the file up to that offset. */
  readonly digest: string;
  readonly isLast: boolean;
}

const NEWLINE = 0x0a;
const MAX_LINE_BYTES = 4_000_000;
/** The bytes after which a chunk ends although it has fewer lines. */
const CHUNK_BYTES = 16_000_000;

/**
 * Reads a file of lines in chunks of `size` lines or about `CHUNK_BYTES`, and holds no more than two chunks in memory. Of a
 * line of more than `MAX_LINE_BYTES` nothing is held.
 */
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
    let begin = from;
    let lines: FileLine[] = [];
    let pieces: Uint8Array[] = [];
    let bytes = 0;
    const take = (isLast: boolean): Chunk => {
      begin = end;
      return { lines: lines.splice(0), end, digest: hash.copy().digest("hex"), isLast };
    };
    const endLine = () => {
      lines.push(bytes > MAX_LINE_BYTES ? TOO_LONG : textOf(Buffer.concat(pieces)));
      pieces = [];
      bytes = 0;
    };
    for await (const piece of piecesOf(createReadStream(this.#path, { start: from }))) {
      hash.update(piece);
      end += piece.length;
      bytes += piece.length;
      if (bytes > MAX_LINE_BYTES) pieces = [];
      else pieces.push(piece);
      if (piece.at(-1) !== NEWLINE) continue;
      endLine();
      if (lines.length === this.#size || end - begin > CHUNK_BYTES) yield take(false);
    }
    if (bytes > 0) endLine();
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

const TOO_LONG = { fault: `has more than ${MAX_LINE_BYTES} bytes` };

function textOf(line: Uint8Array): FileLine {
  try {
    return utf8.decode(line).trim();
  } catch {
    return { fault: "is not UTF-8" };
  }
}

/** Cuts a stream of bytes after each newline. A line may come in several pieces. */
async function* piecesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const part of stream) {
    let from = 0;
    for (let at = part.indexOf(NEWLINE); at !== -1; at = part.indexOf(NEWLINE, from)) {
      yield part.subarray(from, at + 1);
      from = at + 1;
    }
    if (from < part.length) yield part.subarray(from);
  }
}
