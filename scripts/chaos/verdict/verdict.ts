import type { Facts, Finding, Rule } from "./facts.ts";
import { answersAreRight } from "./rule-answers.ts";
import * as attempts from "./rule-attempts.ts";
import * as bytes from "./rule-bytes.ts";
import * as loss from "./rule-loss.ts";
import * as order from "./rule-order.ts";
import * as signature from "./rule-signature.ts";
import * as state from "./rule-state.ts";

const RULES: readonly Rule[] = [
  answersAreRight,
  loss.acceptedIsRecorded,
  loss.wantedIsQueued,
  loss.sequenceHasNoGap,
  loss.skipsAreAskedFor,
  loss.allIsDrained,
  order.firstDeliveriesInOrder,
  order.repeatsInOrder,
  order.repeatsAreBounded,
  attempts.attemptsAreNumbered,
  attempts.delaysAreKept,
  attempts.recordsHavePosts,
  attempts.postsHaveRecords,
  attempts.postsHaveEntries,
  attempts.repeatsAreTold,
  state.countersFollowRecords,
  state.onlyToTheActive,
  state.processesLive,
  signature.signaturesAreValid,
  bytes.bytesAreShown,
];

/** Returns all violations in a round. It is based on the contract and not on the implementation of the dispatcher. */
export function findViolations(facts: Facts): Finding[] {
  return RULES.flatMap((rule) => rule(facts));
}
