import type { Facts, Rule, WrongAnswer } from "./facts.ts";

/** A valid request is answered as the contract says, or 503; 404 only for what somebody has asked to delete. */
export const answersAreRight: Rule = (facts) =>
  facts.wrongAnswers
    .filter((one) => !isOfDeleted(one, facts))
    .map((one) => ({
      rule: "answers are right",
      what: `${one.method} ${one.path} was answered ${one.status}`,
      rows: [one],
    }));

function isOfDeleted({ status, path, endedMs }: WrongAnswer, { operations }: Facts): boolean {
  return (
    status === 404 &&
    operations.some(
      ({ kind, subscriptionId, startedMs }) =>
        kind === "delete" && path.includes(subscriptionId) && startedMs <= endedMs,
    )
  );
}
