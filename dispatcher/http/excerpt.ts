import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";

/** The most bytes of a response body that are read for the record (contract 7.5). */
export const MAX_BODY_BYTES = 64 * 1024;

/** The most bytes of a body that the record keeps (contract 7). */
export const EXCERPT_BYTES = 4 * 1024;

const EMPTY = Buffer.alloc(0);

/** The part of one response body that was read. */
export class BodyRecord {
  /** The bytes read off the wire, before content codings are undone. */
  bytesRead = 0;
  /** Whether the body continues, or would have, after the part that was read. */
  cut = false;
  #kept: Buffer[] = [];
  #bytesKept = 0;
  readonly #keepAtMost: number;

  /** A compressed body is kept as far as it is read, because the excerpt is known only after decompression. */
  constructor(headers: Headers) {
    this.#keepAtMost = isCompressed(headers) ? MAX_BODY_BYTES : EXCERPT_BYTES;
  }

  push(data: Buffer): void {
    if (this.cut) return;
    const taken = data.subarray(0, MAX_BODY_BYTES - this.bytesRead);
    this.cut = taken.length < data.length;
    this.bytesRead += taken.length;
    const kept = taken.subarray(0, this.#keepAtMost - this.#bytesKept);
    if (kept.length === 0) return;
    this.#kept.push(kept);
    this.#bytesKept += kept.length;
  }

  bytes(): Buffer {
    const [first = EMPTY] = this.#kept;
    return this.#kept.length > 1 ? Buffer.concat(this.#kept) : first;
  }
}

type Headers = Readonly<Record<string, string>>;

const COMPRESSED = /^(?:gzip|x-gzip|deflate|br)$/i;
const LATIN = /charset="?(?:iso-8859-1|latin-?1|windows-1252)\b/i;

/**
 * Whether the excerpt has to be decompressed. A body with an unknown coding, most often mislabelled text, is left as it
 * is.
 */
function isCompressed(headers: Headers): boolean {
  const coding = headers["content-encoding"];
  return coding !== undefined && COMPRESSED.test(coding);
}

/**
 * Reads the beginning of a body as text that any PostgreSQL column can hold. `truncated`: the text is not the whole
 * body.
 */
export async function readExcerpt(body: BodyRecord, headers: Headers) {
  let bytes = body.bytes();
  let truncated = body.cut || body.bytesRead > bytes.length;
  if (isCompressed(headers) && bytes.length > 0) {
    const decoded = await decompressStart(bytes, headers["content-encoding"] ?? "");
    bytes = decoded.bytes;
    truncated = body.cut || !decoded.isWhole;
  }
  return { text: decodeText(bytes, headers, truncated), truncated };
}

/** A shared decoder for whole bodies, after which it keeps no state: a new decoder costs more than the decoding. */
const utf8 = new TextDecoder();

function decodeText(bytes: Uint8Array, headers: Headers, truncated: boolean): string {
  const isLatin = LATIN.test(headers["content-type"] ?? "");
  const decoder = isLatin || truncated ? new TextDecoder(isLatin ? "windows-1252" : "utf-8") : utf8;
  // `stream` drops a character that the cut has split.
  const text = decoder.decode(bytes, { stream: decoder !== utf8 });
  // PostgreSQL cannot store a NUL in text.
  return text.replaceAll("\0", "\ufffd");
}

/**
 * Decompresses only as far as the excerpt needs. Output comes in pieces of 16 KiB, and the stream is destroyed at the
 * first piece beyond the limit, so a decompression bomb costs no more than an honest body.
 */
function decompressStart(bytes: Buffer, coding: string) {
  const stream = openDecompressor(bytes, coding);
  const pieces: Buffer[] = [];
  let size = 0;
  return new Promise<{ bytes: Buffer; isWhole: boolean }>((resolve) => {
    const settle = (isWhole: boolean) => {
      stream.destroy();
      resolve({ bytes: Buffer.concat(pieces).subarray(0, EXCERPT_BYTES), isWhole });
    };
    stream.on("data", (piece: Buffer) => {
      pieces.push(piece);
      size += piece.length;
      if (size > EXCERPT_BYTES) settle(false);
    });
    stream.on("end", () => settle(true));
    // The body is broken or was cut. The part before the defect is still useful.
    stream.on("error", () => settle(false));
    stream.end(bytes);
  });
}

function openDecompressor(bytes: Buffer, coding: string) {
  if (/^br$/i.test(coding)) return createBrotliDecompress();
  if (!/^deflate$/i.test(coding)) return createGunzip();
  // Many servers send "deflate" without the zlib header, which begins with method 8.
  return ((bytes[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw();
}
