/** For how long an address that could not be connected to is tried last (our choice). */
const BLAMED_MS = 60_000;
/** How many such addresses are remembered (our choice). */
const MAX_BLAMED = 1_000;

/** Which addresses failed lately: a name with a dead address must not cost its wait at every connection. */
export class AddressMemory {
  /** By origin and address, since when; the latest stands last. */
  readonly #blamedMs = new Map<string, number>();
  readonly #monotonicMs: () => number;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  blame(origin: string, address: string): void {
    const key = keyOf(origin, address);
    this.#blamedMs.delete(key);
    this.#blamedMs.set(key, this.#monotonicMs());
    if (this.#blamedMs.size <= MAX_BLAMED) return;
    const [oldest] = this.#blamedMs.keys();
    if (oldest !== undefined) this.#blamedMs.delete(oldest);
  }

  /** Those without blame first, each group in its own order. */
  inOrder(origin: string, addresses: readonly string[]): readonly string[] {
    if (addresses.length < 2 || this.#blamedMs.size === 0) return addresses;
    const isBlamed = (address: string) => {
      const sinceMs = this.#blamedMs.get(keyOf(origin, address));
      return sinceMs !== undefined && this.#monotonicMs() - sinceMs < BLAMED_MS;
    };
    return addresses.toSorted((a, b) => Number(isBlamed(a)) - Number(isBlamed(b)));
  }
}

function keyOf(origin: string, address: string): string {
  return `${origin} ${address}`;
}
