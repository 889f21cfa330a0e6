import type { Facts, Finding, Rule } from "./facts.ts";
import { answersAreRight } from "./answers.ts";
import * as attempts from "./attempts.ts";
import * as bytes from "./bytes.ts";
import * as loss from "./loss.ts";
import * as order from "./order.ts";
import * as signature from "./signature.ts";
import * as state from "./state.ts";

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
