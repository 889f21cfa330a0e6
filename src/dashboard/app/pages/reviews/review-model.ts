import { idOf } from "../../ui/format.ts";
import { textQuery } from "../../ui/text-query.ts";

export type FlagMove = "under_review" | "accepted" | "rejected" | "withdrawn";

interface Transition {
  readonly to: FlagMove;
  /** Verb on the button that makes the transition. */
  readonly action: string;
}

const CLOSING_MOVES: readonly Transition[] = [
  { to: "accepted", action: "Accepted" },
  { to: "rejected", action: "Rejected" },
  { to: "withdrawn", action: "Withdraw the flag" },
];

/** Returns the states to which a flag can change. A closed flag cannot change any more. */
export function transitionsOf(status: string | undefined): readonly Transition[] {
  if (status === "open") return [{ to: "under_review", action: "Under review" }, ...CLOSING_MOVES];
  return status === "under_review" ? CLOSING_MOVES : [];
}

/** Maps the status of a flag to an explanation for users. */
export const FLAG_MEANING: Readonly<Record<string, string>> = {
  open: "The review is flagged. Nobody has checked it yet.",
  under_review: "The review site is checking the review.",
  accepted: "The review site agreed with the flag, so it should remove the review.",
  rejected: "The review site rejected the flag, so the review stays.",
  withdrawn: "The flag was withdrawn.",
};

export const FILTERS = ["q", "store", "rate", "source", "answered", "flag", "assigned"] as const;
type FilterName = (typeof FILTERS)[number];
type Values = Readonly<Record<FilterName, string | undefined>>;

export const FLAG_STATES = ["open", "under_review", "accepted", "rejected", "withdrawn"] as const;

/**
 * Converts the filters in the address to query parameters of the reviews API. Values that the API would reject
 * are left out; `me` is replaced by the user's id.
 */
export function reviewQuery(values: Values, userId: number) {
  const { q, store, rate, source, answered, flag, assigned } = values;
  const storeId = idOf(store);
  const assignee = assigned === "me" ? userId : idOf(assigned);
  const responded = (["true", "false"] as const).find((one) => one === answered);
  const flagStatus = FLAG_STATES.find((one) => one === flag);
  const stars = rate !== undefined && /^[1-5]$/.test(rate) ? Number(rate) : undefined;
  return {
    ...textQuery(q),
    ...(storeId !== undefined && { store_id: storeId }),
    ...(stars !== undefined && { rate: stars }),
    ...(source !== undefined && source.length <= 64 && { source_platform: source }),
    ...(responded !== undefined && { responded }),
    ...(flagStatus !== undefined && { flag_status: flagStatus }),
    ...(assignee !== undefined && { assigned_user_id: assignee }),
  } as const;
}

export type ReviewQuery = ReturnType<typeof reviewQuery>;

interface View {
  readonly title: string;
  readonly values: Partial<Values>;
}
/** Predefined filter sets for common tasks, shown as buttons above the review list. */
export const VIEWS: readonly View[] = [
  { title: "All", values: {} },
  { title: "Without response", values: { answered: "false" } },
  { title: "Open flags", values: { flag: "open" } },
  { title: "Assigned to me", values: { assigned: "me" } },
];

export function searchOf(values: Partial<Values>): string {
  const pairs = Object.entries(values).flatMap<[string, string]>(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  );
  return new URLSearchParams(pairs).toString();
}
