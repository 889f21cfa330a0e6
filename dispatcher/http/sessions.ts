/** How much the kept TLS sessions may take together (our choice). One is 1 to 5 KB, most of it the receiver's certificates. */
const MAX_SESSION_BYTES = 32 * 1024 * 1024;

/**
 * The last TLS session of each origin. A new connection that resumes one spares both sides the
 * certificates: with short ones and P-256 a quarter of a handshake's CPU under Bun 1.4.4.
 */
export class SessionCache {
  readonly #sessions = new Map<string, Buffer>();
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number = MAX_SESSION_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get(origin: string): Buffer | undefined {
    return this.#sessions.get(origin);
  }

  /** An origin that renews its session moves to the end; those renewed the longest ago are forgotten first. */
  set(origin: string, session: Buffer): void {
    this.#forget(origin);
    this.#sessions.set(origin, session);
    this.#bytes += session.length;
    for (const oldest of this.#sessions.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#forget(oldest);
    }
  }

  #forget(origin: string): void {
    this.#bytes -= this.#sessions.get(origin)?.length ?? 0;
    this.#sessions.delete(origin);
  }
}
