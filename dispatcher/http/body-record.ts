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
  constructor(isCompressed: boolean) {
    this.#keepAtMost = isCompressed ? MAX_BODY_BYTES : EXCERPT_BYTES;
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
