export type FlagMove = "under_review" | "accepted" | "rejected" | "withdrawn";

interface Move {
  readonly to: FlagMove;
  /** The verb on the button. */
  readonly action: string;
}

const CLOSING: readonly Move[] = [
  { to: "accepted", action: "Accepted" },
  { to: "rejected", action: "Rejected" },
  { to: "withdrawn", action: "Withdraw" },
];

/** What a flag may become; nothing, once it is closed. */
export function movesOf(status: string | undefined): readonly Move[] {
  if (status === "open") return [{ to: "under_review", action: "Under review" }, ...CLOSING];
  return status === "under_review" ? CLOSING : [];
}

/** In words, what the status of a flag means. */
export const FLAG_MEANING: Readonly<Record<string, string>> = {
  open: "Somebody should look whether this review is allowed.",
  under_review: "The review site is looking at it.",
  accepted: "The review site agreed: the review should go.",
  rejected: "The review site did not agree: the review stays.",
  withdrawn: "The flag was taken back.",
};
