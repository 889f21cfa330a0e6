import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";

/** The most bytes of a response body that are read for the attempt record (contract 7.5). */
export const MAX_BODY_BYTES = 64 * 1024;

/** The most bytes of a response body that the attempt record keeps (contract 7). */
export const EXCERPT_BYTES = 4 * 1024;

const EMPTY_BUFFER = Buffer.alloc(0);

/** The part of one response body that was read. */
export class BodyRecord {
  /** The number of bytes that were read, before decompression. */
  bytesRead = 0;
  /** Whether the part that was read is not the whole body. */
  cut = false;
  #kept: Buffer[] = [];
  #bytesKept = 0;
  readonly #keepAtMost: number;

  /** All bytes that are read of a compressed body are kept, because the excerpt is known only after decompression. */
  constructor(headers: ResponseHeaders) {
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
    const [first = EMPTY_BUFFER] = this.#kept;
    return this.#kept.length > 1 ? Buffer.concat(this.#kept) : first;
  }
}

type ResponseHeaders = Readonly<Record<string, string>>;

const COMPRESSED_CODING = /^(?:gzip|x-gzip|deflate|br)$/i;
const LATIN_CHARSET = /charset="?(?:iso-8859-1|latin-?1|windows-1252)\b/i;

/**
 * Whether the excerpt has to be decompressed. A body with an unknown coding, most often mislabelled text, is left as it
 * is.
 */
function isCompressed(headers: ResponseHeaders): boolean {
  const coding = headers["content-encoding"];
  return coding !== undefined && COMPRESSED_CODING.test(coding);
}

/**
 * Reads the beginning of a body as text that any PostgreSQL column can hold. `truncated`: the text is not the whole
 * body.
 */
export async function readExcerpt(body: BodyRecord, headers: ResponseHeaders) {
  let bytes = body.bytes();
  let truncated = body.cut || body.bytesRead > bytes.length;
  if (isCompressed(headers) && bytes.length > 0) {
    const decoded = await decompressStart(bytes, headers["content-encoding"] ?? "");
    bytes = decoded.bytes;
    truncated = body.cut || !decoded.isWhole;
  }
  return { text: decodeText(bytes, headers, truncated), truncated };
}

/**
 * A decoder that all complete bodies share, because it keeps no state after them and a new decoder costs more than the
 * decoding.
 */
const utf8 = new TextDecoder();

function decodeText(bytes: Uint8Array, headers: ResponseHeaders, truncated: boolean): string {
  const isLatin = LATIN_CHARSET.test(headers["content-type"] ?? "");
  const decoder = isLatin || truncated ? new TextDecoder(isLatin ? "windows-1252" : "utf-8") : utf8;
  // `stream` drops a character that the cut has split.
  const text = decoder.decode(bytes, { stream: decoder !== utf8 });
  // PostgreSQL cannot store a NUL in text.
  return text.replaceAll("\0", "\ufffd");
}

/**
 * Decompresses only as far as the excerpt needs. Output comes in pieces of 16 KiB, and the stream is destroyed at the
 * first piece beyond the limit, so a decompression bomb costs no more than any other body.
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
    // If the body is broken or was cut, the part before the defect is returned, because it is still useful.
    stream.on("error", () => settle(false));
    stream.end(bytes);
  });
}

function openDecompressor(bytes: Buffer, coding: string) {
  if (/^br$/i.test(coding)) return createBrotliDecompress();
  if (!/^deflate$/i.test(coding)) return createGunzip();
  // Many servers send "deflate" without the zlib header, whose first byte has 8 in its low four bits.
  return ((bytes[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw();
}
