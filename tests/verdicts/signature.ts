import { createHmac } from "node:crypto";

import { CLOCKS_MS, crashesIn, type Facts, type Post, type Rule, SETTINGS_MS } from "./facts.ts";
import { shown } from "./attempts.ts";

interface Secret {
  readonly secret: string;
  readonly fromMs: number;
  untilMs: number;
}

interface Secrets {
  readonly known: readonly Secret[];
  /** The time from which an unknown secret may have been valid. */
  readonly unknownFromMs: number;
}

function secretsOf(
  facts: Pick<Facts, "operations" | "finalSecrets">,
  subscriptionId: string,
): Secrets {
  const known: Secret[] = [];
  const unanswered: number[] = [];
  for (const { kind, secret, status, startedMs, endedMs, ...rest } of facts.operations) {
    if (rest.subscriptionId !== subscriptionId || (kind !== "create" && kind !== "rotate"))
      continue;
    if (status === undefined) unanswered.push(startedMs);
    if (secret === undefined) continue;
    for (const before of known) before.untilMs = Math.min(before.untilMs, endedMs);
    known.push({ secret, fromMs: startedMs, untilMs: Number.POSITIVE_INFINITY });
  }
  const final = facts.finalSecrets.get(subscriptionId);
  // If the response to the create was lost, the run does not know the id, so it has never rotated the secret.
  const [firstUnanswered = known.length === 0 ? 0 : Number.POSITIVE_INFINITY] = unanswered;
  const isNew = final !== undefined && !known.some(({ secret }) => secret === final);
  if (isNew)
    known.push({ secret: final, fromMs: firstUnanswered, untilMs: Number.POSITIVE_INFINITY });
  // The secret of an unanswered operation is known from the final state, unless a later one was answered. If two are
  // unanswered, one stays unknown.
  const isKnown = unanswered.length === 0 || (unanswered.length === 1 && isNew);
  return { known, unknownFromMs: isKnown ? Number.POSITIVE_INFINITY : firstUnanswered };
}

/** Each request is signed over its exact bytes with a secret that was valid at its time. */
export const signaturesAreValid: Rule<
  "subscriptions" | "operations" | "finalSecrets" | "posts" | "faults"
> = (facts) =>
  facts.subscriptions.flatMap((one) => {
    const secrets = secretsOf(facts, one.id);
    return facts.posts
      .filter((post) => post.host === one.host && !isSigned(facts, post, secrets))
      .map((post) => ({
        rule: "signatures are valid",
        what: `${one.id} got ${post.eventId}/${post.attempt} signed with no secret of that time`,
        rows: [shown(post)],
      }));
  });

function isSigned(
  facts: Pick<Facts, "faults">,
  post: Post,
  { known, unknownFromMs }: Secrets,
): boolean {
  const { body, atMs } = post;
  if (body === undefined || atMs >= unknownFromMs) return true;
  const isOf = (secret: string, signature: string) =>
    signature === `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  const inTime = known.some(
    ({ secret, fromMs, untilMs }) =>
      isOf(secret, post.signature) &&
      atMs >= fromMs - CLOCKS_MS &&
      (atMs <= untilMs + SETTINGS_MS ||
        crashesIn(facts, { fromMs: untilMs, untilMs: atMs }).length > 0),
  );
  const { previousSignature } = post;
  return (
    inTime &&
    (previousSignature === null || known.some(({ secret }) => isOf(secret, previousSignature)))
  );
}
