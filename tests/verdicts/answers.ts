import type { Facts, Rule, WrongAnswer } from "./facts.ts";

/**
 * A valid request is answered according to the contract or with 503; 404 is allowed only after a delete was
 * requested.
 */
export const answersAreRight: Rule<"wrongAnswers" | "operations"> = (facts) =>
  facts.wrongAnswers
    .filter((one) => !isOfDeleted(one, facts))
    .map((one) => ({
      rule: "answers are right",
      what: `${one.method} ${one.path} was answered ${one.status}`,
      rows: [one],
    }));

function isOfDeleted(
  { status, path, endedMs }: WrongAnswer,
  { operations }: Pick<Facts, "operations">,
): boolean {
  return (
    status === 404 &&
    operations.some(
      ({ kind, subscriptionId, startedMs }) =>
        kind === "delete" && path.includes(subscriptionId) && startedMs <= endedMs,
    )
  );
}
