/**
 * A lane that is blocked by a failure of this service, in its stored form. `sequence` and `event_id` belong to its
 * first entry.
 */
export interface QuarantinedLane {
  readonly subscription_id: string;
  readonly reason: QuarantineReason;
  readonly event_id: string | null;
  readonly sequence: number | null;
  /**
   * The id of the review if the lane contains the events of one review; null if it contains all events of the
   * subscription.
   */
  readonly review_id: number | null;
  readonly since: string;
}

/**
 * The reasons why a lane is quarantined:
 * - `history_missing`: the body of the entry cannot be composed.
 * - `unreadable`: the entries cannot be read.
 * - `unrecordable`: the result of an attempt cannot be written.
 * - `secret_unreadable`: no master key opens the subscription's secret or headers.
 * - `locked`: another PostgreSQL session holds a lock on a row that the dispatcher needs.
 */
export const QUARANTINE_REASONS = [
  "history_missing",
  "unreadable",
  "unrecordable",
  "secret_unreadable",
  "locked",
] as const;
type QuarantineReason = (typeof QUARANTINE_REASONS)[number];
