/**
 * A receiver that finds what it missed by the sequence headers alone (contract 7.19): each number up to the highest
 * `X-SVC-Settled` that it has not got. It knows the rule of the contract and nothing of the service.
 */
export class SequenceChecker {
  readonly #got = new Set<number>();
  readonly #missed = new Set<number>();
  #through = 0;

  /** The numbers that the receiver missed, in their order. */
  get missed(): readonly number[] {
    return [...this.#missed].toSorted((a, b) => a - b);
  }

  /** Notes an accepted request, and returns whether its event came before. */
  take({ number, settled }: { readonly number: number; readonly settled: number }): boolean {
    const isRepeat = this.#got.has(number);
    this.#got.add(number);
    while (this.#through < settled) {
      this.#through += 1;
      if (!this.#got.has(this.#through)) this.#missed.add(this.#through);
    }
    this.#missed.delete(number);
    return isRepeat;
  }
}
