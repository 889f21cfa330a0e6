/** A lane that stands still for a reason on our side, as it is stored. `sequence` and `event_id` are of its first entry. */
export interface QuarantinedLane {
  readonly subscription_id: string;
  readonly reason: QuarantineReason;
  readonly event_id: string | null;
  readonly sequence: number | null;
  /** The review of a lane by review; null for all events of the subscription. */
  readonly review_id: number | null;
  readonly since: string;
}

/**
 * Why a lane stands still. `history_missing`: the body of the entry cannot be composed. `unreadable`: its entries cannot be
 * read. `unrecordable`: an outcome cannot be written. `secret_unreadable`: no master key opens its secret. `locked`: another
 * session holds a lock on its rows.
 */
export const QUARANTINE_REASONS = [
  "history_missing",
  "unreadable",
  "unrecordable",
  "secret_unreadable",
  "locked",
] as const;
type QuarantineReason = (typeof QUARANTINE_REASONS)[number];
