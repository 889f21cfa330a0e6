/** Something to be given up when its signal aborts. */
export interface Abortable {
  abort(): void;
}

/**
 * One listener per signal, however many requests share it: a signal finds a listener to remove by
 * walking all of them, which with 2,000 requests in flight cost more than the requests.
 */
export class AbortWatch {
  readonly #watched = new WeakMap<AbortSignal, Set<Abortable>>();

  add(signal: AbortSignal, target: Abortable): void {
    const targets = this.#watched.get(signal) ?? this.#listen(signal);
    targets.add(target);
  }

  delete(signal: AbortSignal, target: Abortable): void {
    this.#watched.get(signal)?.delete(target);
  }

  #listen(signal: AbortSignal): Set<Abortable> {
    const targets = new Set<Abortable>();
    this.#watched.set(signal, targets);
    const abortAll = () => {
      for (const target of targets) target.abort();
    };
    signal.addEventListener("abort", abortAll, { once: true });
    return targets;
  }
}
