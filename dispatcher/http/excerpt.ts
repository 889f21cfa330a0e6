import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";

/** How much of a response body is read; it is for the record only (contract 7.5). */
export const MAX_BODY_BYTES = 64 * 1024;

/** How much of it is kept (contract 7). */
export const EXCERPT_BYTES = 4 * 1024;

const EMPTY = Buffer.alloc(0);

/** What was read of one body. */
export class BodyRecord {
  /** How many bytes were read off the wire, before any content coding is undone. */
  bytesRead = 0;
  /** Whether the body went on, or would have, behind what was read. */
  cut = false;
  #kept: Buffer[] = [];
  #bytesKept = 0;
  readonly #keepAtMost: number;

  /** A compressed body is kept as far as it is read, since nobody knows yet which part becomes the excerpt. */
  constructor(headers: Headers) {
    this.#keepAtMost = isCompressed(headers) ? MAX_BODY_BYTES : EXCERPT_BYTES;
  }

  push(data: Buffer): void {
    if (this.cut) return;
    let taken = data;
    if (this.bytesRead + data.length > MAX_BODY_BYTES) {
      taken = data.subarray(0, MAX_BODY_BYTES - this.bytesRead);
      this.cut = true;
    }
    this.bytesRead += taken.length;
    const room = this.#keepAtMost - this.#bytesKept;
    if (room <= 0 || taken.length === 0) return;
    const kept = taken.subarray(0, room);
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

/** Whether the excerpt has to be decompressed. A body of an unknown coding, most often mislabelled text, is not. */
function isCompressed(headers: Headers): boolean {
  const coding = headers["content-encoding"];
  return coding !== undefined && COMPRESSED.test(coding);
}

/** Reads the beginning of a body as text that any column holds. `truncated`: it is not the whole body, whatever cut it. */
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

/** For a whole body, after which it remembers nothing: to make one for each answer costs more than to use it. */
const utf8 = new TextDecoder();

function decodeText(bytes: Uint8Array, headers: Headers, truncated: boolean): string {
  const isLatin = LATIN.test(headers["content-type"] ?? "");
  const decoder = isLatin || truncated ? new TextDecoder(isLatin ? "windows-1252" : "utf-8") : utf8;
  // `stream` drops a character that the cut went through instead of showing half of it.
  const text = decoder.decode(bytes, { stream: decoder !== utf8 });
  // PostgreSQL has no way to store a NUL in text.
  return text.replaceAll("\0", "\ufffd");
}

/**
 * Decompresses no further than the excerpt needs: output comes in pieces of 16 KiB, and the stream is
 * destroyed at the first that goes over, so a bomb costs no more than an honest body.
 */
function decompressStart(
  bytes: Buffer,
  coding: string,
): Promise<{ bytes: Buffer; isWhole: boolean }> {
  const stream = openDecompressor(bytes, coding);
  const pieces: Buffer[] = [];
  let size = 0;
  return new Promise((resolve) => {
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
    // The body is broken or was cut short; what came out before is still worth showing.
    stream.on("error", () => settle(false));
    stream.end(bytes);
  });
}

function openDecompressor(bytes: Buffer, coding: string) {
  if (/^br$/i.test(coding)) return createBrotliDecompress();
  if (!/^deflate$/i.test(coding)) return createGunzip();
  // Half of the world sends "deflate" without the zlib header, which begins with method 8.
  return ((bytes[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw();
}
