/** How many origins a TLS session is kept for (our choice). A session is 1 to 5 KB, most of it the receiver's certificates. */
export const MAX_SESSIONS = 2000;

/**
 * The last TLS session of each origin. A new connection that resumes one spares both sides the
 * certificates: with short ones and P-256 a quarter of a handshake's CPU under Bun 1.4.4.
 */
export class SessionCache {
  readonly #sessions = new Map<string, Buffer>();

  get(origin: string): Buffer | undefined {
    return this.#sessions.get(origin);
  }

  /** An origin that renews its session moves to the end; the one renewed the longest ago is forgotten first. */
  set(origin: string, session: Buffer): void {
    this.#sessions.delete(origin);
    this.#sessions.set(origin, session);
    if (this.#sessions.size <= MAX_SESSIONS) return;
    const [oldest] = this.#sessions.keys();
    if (oldest !== undefined) this.#sessions.delete(oldest);
  }
}
