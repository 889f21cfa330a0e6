import type { Facts, Finding, Rule } from "./facts.ts";
import { answersAreRight } from "./answers.ts";
import * as attempts from "./attempts.ts";
import * as bytes from "./bytes.ts";
import * as loss from "./loss.ts";
import { missedAreFound } from "./missed.ts";
import { numbersAreRight } from "./numbers.ts";
import * as order from "./order.ts";
import * as signature from "./signature.ts";
import * as state from "./state.ts";

interface NamedRule {
  readonly name: string;
  readonly needs: readonly (keyof Facts)[];
  readonly find: (facts: Facts) => Finding[];
}

/** Names a rule and the parts of the facts without which it cannot judge. */
function rule<Part extends keyof Facts>(
  name: string,
  needs: readonly Part[],
  find: Rule<Part>,
): NamedRule {
  return { name, needs, find };
}

const MATCHED = ["attempts", "posts", "subscriptions"] as const;
const PLACED = [...MATCHED, "queued", "settled"] as const;
const REPLAYED = ["subscriptions", "attempts", "audit", "operations"] as const;

const RULES: readonly NamedRule[] = [
  rule("answers are right", ["wrongAnswers", "operations"], answersAreRight),
  rule(
    "accepted is recorded",
    ["accepted", "history", "claims", "reviews"],
    loss.acceptedIsRecorded,
  ),
  rule(
    "nothing lost, and only what is wanted",
    [
      "subscriptions",
      "history",
      "operations",
      "audit",
      "queued",
      "settled",
      "attempts",
      "batchEntries",
    ],
    loss.wantedIsQueued,
  ),
  rule(
    "sequence without a gap",
    ["subscriptions", "queued", "settled", "attempts"],
    loss.sequenceHasNoGap,
  ),
  rule("skips are asked for", ["settled", "operations"], loss.skipsAreAskedFor),
  rule("all is drained", ["subscriptions", "queued", "batchEntries"], loss.allIsDrained),
  rule("first deliveries in order", PLACED, order.firstDeliveriesInOrder),
  rule("repeats in order", [...PLACED, "faults"], order.repeatsInOrder),
  rule("repeats are bounded", [...PLACED, "faults"], order.repeatsAreBounded),
  rule("attempts are numbered", ["attempts"], attempts.attemptsAreNumbered),
  rule("delays are kept", [...MATCHED, "retryDelaysMs"], attempts.delaysAreKept),
  rule("no record without a POST", [...MATCHED, "faults"], attempts.recordsHavePosts),
  rule("no POST without a record", [...MATCHED, "faults"], attempts.postsHaveRecords),
  rule("no POST without an entry", PLACED, attempts.postsHaveEntries),
  rule("repeats are marked", [...PLACED, "faults"], attempts.repeatsAreTold),
  rule("counters follow the records", REPLAYED, state.countersFollowRecords),
  rule("only to the active", [...REPLAYED, "posts", "faults"], state.onlyToTheActive),
  rule("processes live", ["exits"], state.processesLive),
  rule(
    "signatures are valid",
    ["subscriptions", "operations", "finalSecrets", "posts", "faults"],
    signature.signaturesAreValid,
  ),
  rule(
    "missed events are found",
    ["subscriptions", "logged", "posts", "attempts", "settled", "faults"],
    missedAreFound,
  ),
  rule("an attempt shows what was sent", MATCHED, bytes.bytesAreShown),
  rule("numbers are right", [...MATCHED, "logged", "settled"], numbersAreRight),
];

interface Judgement {
  readonly findings: readonly Finding[];
  /** The names of the rules that could not judge, because a part of the facts is absent. */
  readonly unjudged: readonly string[];
}

/**
 * Judges facts by each rule whose parts are given. The rules are based on the contract and not on the implementation of
 * the dispatcher.
 */
export function judge(facts: Partial<Facts>): Judgement {
  const canJudge = ({ needs }: NamedRule) => needs.every((part) => facts[part] !== undefined);
  return {
    findings: RULES.filter(canJudge).flatMap(({ find }) => find(facts as Facts)),
    unjudged: RULES.filter((one) => !canJudge(one)).map(({ name }) => name),
  };
}

/** Returns all violations in complete facts. */
export function findViolations(facts: Facts): readonly Finding[] {
  return judge(facts).findings;
}
