/** A row lock: first come, first served. */
export class Lock {
  #held = false;
  readonly #waiting: (() => void)[] = [];

  async hold<T>(work: () => Promise<T>): Promise<T> {
    if (this.#held) await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    this.#held = true;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#held = false;
      else next();
    }
  }
}
