export type FlagMove = "under_review" | "accepted" | "rejected" | "withdrawn";

interface Move {
  readonly to: FlagMove;
  /** The verb that stands on the button. */
  readonly action: string;
}

const CLOSING: readonly Move[] = [
  { to: "accepted", action: "Accepted" },
  { to: "rejected", action: "Rejected" },
  { to: "withdrawn", action: "Withdraw" },
];

/** Answers what a flag may become; a closed flag becomes nothing. */
export function movesOf(status: string | undefined): readonly Move[] {
  if (status === "open") return [{ to: "under_review", action: "Under review" }, ...CLOSING];
  return status === "under_review" ? CLOSING : [];
}

/** Status of a flag → what it means. */
export const FLAG_MEANING: Readonly<Record<string, string>> = {
  open: "Somebody should look whether this review is allowed.",
  under_review: "The review site is looking at it.",
  accepted: "The review site agreed: the review should go.",
  rejected: "The review site did not agree: the review stays.",
  withdrawn: "The flag was taken back.",
};
