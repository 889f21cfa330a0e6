import type { Rule } from "./facts.ts";
import { type MatchedPart, matchPosts } from "./match.ts";
import { shown } from "./attempts.ts";

/** An attempt shows exactly the body that its receiver got (contract 7.13). */
export const bytesAreShown: Rule<MatchedPart> = (facts) =>
  [...matchPosts(facts).recordOf]
    .filter(
      ([post, record]) =>
        post.body !== undefined && record.body !== undefined && record.body !== post.body,
    )
    .map(([post, record]) => ({
      rule: "an attempt shows what was sent",
      what: `${record.subscriptionId}#${record.sequence}/${record.attempt} shows ${record.body === null ? "nothing" : "other bytes"}`,
      rows: [record, shown(post)],
    }));
