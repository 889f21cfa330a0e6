/** A bug put in on purpose, to show that the simulation finds it. */
export interface Plant {
  readonly name: string;
  /** A seed that shows it; where the code has changed since, another one near it does. */
  readonly seed: number;
  readonly bug: string;
  /** Puts a function that has the bug in the place of one of the dispatcher or of the simulated stores. */
  readonly grow: () => Promise<void>;
  /** The invariants that may find it: what it breaks, whichever of its consequences comes first. */
  readonly breaks: readonly string[];
}
