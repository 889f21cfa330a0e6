import type { FailureAudit } from "../audit/failures.ts";
import type { Call } from "../http/call.ts";
import { hmacSha256Hex } from "../lib/hmac.ts";
import { invalid, Problem, unavailable } from "../lib/problem.ts";
import { equalInConstantTime, type SecretBox } from "../lib/secret-box.ts";
import type { Asking } from "./admit.ts";
import type { PartnerFinder, SecretFinder } from "./finders.ts";
import type { ProviderDeps, Taken } from "./group.ts";
import { readEvents } from "./input.ts";
import { PROVIDER_SLUG } from "./model.ts";
import { checkTexts, type ProfanityFinder } from "./profanity.ts";
import { providerSecretContext } from "./secret.ts";

const SLUG = new RegExp(PROVIDER_SLUG);
/** Signs in place of a provider that does not exist, so that its refusal takes as long as that of one that does. */
const STAND_IN_SECRET = "there is no such provider";

interface VerifyingDeps {
  readonly box: SecretBox;
  readonly secretOf: SecretFinder;
  readonly failures: FailureAudit;
}

const SIGNATURE = /^sha256=[0-9a-f]{64}$/;

/** Whether a request has a signature of the right form, so that its body is worth reading. */
export function hasSignature({ headers }: Pick<Call, "headers">): boolean {
  return SIGNATURE.test(headers.get("x-provider-signature") ?? "");
}

/**
 * Throws `invalid_signature`, and audits it, unless the provider signed these bytes, and for an unknown provider
 * (contract 9.1).
 */
export async function verifySignature(
  deps: VerifyingDeps,
  slug: string,
  { call, raw }: { call: Call; raw: Uint8Array },
): Promise<void> {
  const sealed = SLUG.test(slug) ? await deps.secretOf(slug) : undefined;
  const secret =
    sealed === undefined ? STAND_IN_SECRET : deps.box.open(sealed, providerSecretContext(slug));
  const expected = `sha256=${hmacSha256Hex(secret, raw)}`;
  const matches = equalInConstantTime(call.headers.get("x-provider-signature") ?? "", expected);
  if (matches && sealed !== undefined) return;
  const details = { provider: SLUG.test(slug) ? slug : null };
  await deps.failures.record({ action: "PROVIDER_AUTH_FAILED", details }, call);
  throw new Problem("invalid_signature");
}

interface JoiningDeps extends Pick<ProviderDeps, "clock" | "traces"> {
  readonly partners: PartnerFinder;
  readonly profanity: ProfanityFinder;
  readonly take: (asking: Asking) => Promise<Taken>;
}

/** Takes all events of one request or none (contract 9.1). */
export async function takeEvents(
  deps: JoiningDeps,
  slug: string,
  body: unknown,
): Promise<{ accepted: number; duplicates: number }> {
  const read = readEvents(body, deps.clock.now());
  deps.traces?.came(read.events.map(({ occurredAt }) => occurredAt));
  // Before the transaction, because long texts take long, and all of the partners' writers wait for its locks.
  const profanity = await checkTexts(deps.profanity, read.events);
  const partners = await deps.partners(read.references.flatMap(({ siteId }) => siteId ?? []));
  const taken = await deps.take({ slug, read, profanity, partners });
  if (taken.kind === "refused") throw invalid(taken.faults);
  if (taken.kind === "left") throw unavailable();
  await taken.woken;
  return { accepted: taken.accepted, duplicates: read.events.length - taken.accepted };
}
