/** Values of the form for an erasure before they are sent. */
export interface ErasureDraft {
  readonly kind: "reviewer" | "user";
  readonly user_id: number | undefined;
  readonly reviewer_email: string;
  /** Ids of reviews, separated by spaces, commas or lines. */
  readonly review_ids: string;
  /** Companies to which the search for a reviewer is limited; undefined for all. */
  readonly partner_id: number | undefined;
  readonly account_id: number | undefined;
  readonly isUnderstood: boolean;
}

const idsIn = (text: string): number[] =>
  text
    .split(/[\s,;]+/)
    .filter((one) => one !== "")
    .map(Number);

/** Returns the values of an empty form, which proposes a user if it is opened for one. */
export const newErasure = (userId: number | undefined): ErasureDraft => ({
  kind: userId === undefined ? "reviewer" : "user",
  user_id: userId,
  reviewer_email: "",
  review_ids: "",
  partner_id: undefined,
  account_id: undefined,
  isUnderstood: false,
});

/** Returns what the operator must still do before the form can be sent; undefined if it is ready. */
export function missingIn({ kind, user_id: id, ...draft }: ErasureDraft): string | undefined {
  const isNamed =
    kind === "user"
      ? id !== undefined
      : draft.reviewer_email.trim() !== "" || draft.review_ids.trim() !== "";
  if (!isNamed)
    return kind === "user" ? "Choose the user first." : "Enter the email address first.";
  return draft.isUnderstood ? undefined : "Tick the box first.";
}

export function erasureBody({ kind, user_id: userId, ...draft }: ErasureDraft) {
  // Id 0 stands for "no user selected". No user has this id, so the API answers with a validation error for the field.
  if (kind === "user") return { user_id: userId ?? 0 };
  const email = draft.reviewer_email.trim();
  const ids = idsIn(draft.review_ids);
  return {
    ...(email !== "" && { reviewer_email: email }),
    ...(ids.length > 0 && { review_ids: ids }),
    ...(draft.partner_id !== undefined && { partner_id: draft.partner_id }),
    ...(draft.account_id !== undefined && { account_id: draft.account_id }),
  };
}
