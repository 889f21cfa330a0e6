/** Small Fast Counter (sfc32): 128 bits of state from one seed, the same numbers on every machine. */
export class Prng {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;
  readonly seed: number;

  constructor(seed: number) {
    this.seed = seed;
    this.#a = Math.imul(seed, 0x9e3779b1) | 0;
    this.#b = (seed ^ 0x243f6a88) | 0;
    this.#c = Math.floor(seed / 2 ** 32) | 0;
    // Skips the first numbers, which are similar for neighbouring seeds.
    for (let n = 0; n < 15; n++) this.next();
  }

  /** Returns a number of at least 0 and below 1. */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** Returns an integer between both bounds, inclusive. */
  int(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return probability > 0 && this.next() < probability;
  }

  pick<T>(from: readonly T[]): T {
    const one = from[this.int(0, from.length - 1)];
    if (one === undefined) throw new RangeError("Nothing to pick from.");
    return one;
  }

  /** Returns a random latency: mostly short, rarely long. */
  latency(typical: number, worst: number): number {
    return this.chance(0.02) ? this.between(typical, worst) : this.between(0.1, typical);
  }

  shuffled<T>(list: readonly T[]): T[] {
    const left = [...list];
    return list.flatMap(() => left.splice(this.int(0, left.length - 1), 1));
  }

  /** Returns a separate generator for a part of the run, which does not depend on the draws of other parts. */
  fork(): Prng {
    return new Prng(this.int(0, 2 ** 31));
  }
}
