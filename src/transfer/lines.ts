import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";

import { type Fields, isRecord } from "../lib/fields.ts";

/** The text of a line, or the reason why it cannot be read. */
export type FileLine = string | { readonly fault: string };

/** A chunk of a file: consecutive lines that are imported together. */
export interface Chunk {
  readonly lines: readonly FileLine[];
  /** The position in the file after the last line, in bytes. */
  readonly end: number;
  /** The SHA-256 of the file up to that position. */
  readonly digest: string;
  readonly isLast: boolean;
}

const NEWLINE = 0x0a;
const MAX_LINE_BYTES = 4_000_000;
/** The size in bytes after which a chunk ends, even if it has fewer lines than the maximum. */
const CHUNK_BYTES = 16_000_000;

/**
 * Reads a file of lines in chunks of `size` lines or about `CHUNK_BYTES`, and holds no more than two chunks in memory.
 * The text of a line that is longer than `MAX_LINE_BYTES` is dropped; the line becomes a fault.
 */
export class FileLines {
  readonly #path: string;
  readonly #size: number;

  constructor(path: string, size: number) {
    this.#path = path;
    this.#size = size;
  }

  /** Returns the SHA-256 of the first `bytes` bytes of the file. */
  async digestOf(bytes: number): Promise<string> {
    return (await this.#hashed(bytes)).digest("hex");
  }

  /** Reads the chunks of the file from the byte `from`, at which a line begins. The last chunk may be empty. */
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
      lines.push(bytes > MAX_LINE_BYTES ? LINE_TOO_LONG : textOf(Buffer.concat(pieces)));
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

const LINE_TOO_LONG = { fault: `has more than ${MAX_LINE_BYTES} bytes` };

function textOf(line: Uint8Array): FileLine {
  try {
    return utf8.decode(line).trim();
  } catch {
    return { fault: "is not UTF-8" };
  }
}

/**
 * Divides a stream of bytes into pieces, each of which ends at a newline or at the end of a read. So a line may have
 * several pieces.
 */
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

/** Parses a line as a JSON object. Returns the object, or the reason why the line is not one. */
export function parseLine(text: FileLine): Fields | string {
  if (typeof text !== "string") return text.fault;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : "must be a JSON object";
  } catch {
    return "is not JSON";
  }
}
