/** One holding of a shard. */
export interface Claim {
  /** How often the shard has been claimed. */
  readonly epoch: number;
  /** An earlier holder died, and the first entries of its lanes may have been sent already. */
  readonly orphaned: boolean;
}
