/** A lane: a test, all entries, or those of a review or of none. The entries of a lane are sent one after the other. */
export type LaneKey = `test ${number}` | "main" | number | null;

interface Entry {
  readonly isTest: boolean;
  readonly sequence: number;
  readonly reviewId: number | null;
}

export function laneOf(
  ordering: "review" | "subscription",
  { isTest, sequence, reviewId }: Entry,
): LaneKey {
  if (isTest) return `test ${sequence}`;
  return ordering === "subscription" ? "main" : reviewId;
}

/** Whether two entries of a subscription are in the same lane. */
export function shareLane(ordering: "review" | "subscription", a: Entry, b: Entry): boolean {
  return laneOf(ordering, a) === laneOf(ordering, b);
}
