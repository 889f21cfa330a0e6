import type { FailureAudit } from "../auth/audit-failures.ts";
import type { RequestContext } from "../http/request-context.ts";
import { invalid, Problem, unavailable } from "../lib/problem.ts";
import { equalInConstantTime } from "../lib/secret-box.ts";
import { hmacSha256Hex } from "../lib/secrets.ts";
import { createTaking, type ProviderDeps } from "./group.ts";
import { readEvents } from "./input.ts";
import { PROVIDER_SLUG, providerSecretContext } from "./model.ts";
import { checkTexts, createProfanityFinder } from "./profanity.ts";
import { createPartnerFinder, createSecretFinder } from "./queries/finders.ts";

const SLUG = new RegExp(PROVIDER_SLUG);
/** Signs in place of a provider that does not exist, so that its refusal takes as long as that of one that does. */
const STAND_IN_SECRET = "there is no such provider";

interface Signed {
  readonly requestContext: RequestContext;
  readonly raw: Uint8Array;
}

const SIGNATURE = /^sha256=[0-9a-f]{64}$/;

/** Whether a request has a signature of the right form, so that its body is worth reading. */
export function hasSignature({ headers }: Pick<RequestContext, "headers">): boolean {
  return SIGNATURE.test(headers.get("x-provider-signature") ?? "");
}

interface SigningDeps extends Pick<ProviderDeps, "box" | "db" | "clock"> {
  readonly failures: FailureAudit;
}

export type Signatures = ReturnType<typeof createSignatures>;

export function createSignatures({ box, db, clock, failures }: SigningDeps) {
  const secrets = createSecretFinder(db, clock);
  const verified = new WeakMap<Uint8Array, string>();
  const isSigned = (slug: string, sealed: string | undefined, { requestContext, raw }: Signed) => {
    const secret =
      sealed === undefined ? STAND_IN_SECRET : box.open(sealed, providerSecretContext(slug));
    const expected = `sha256=${hmacSha256Hex(secret, raw)}`;
    const matches = equalInConstantTime(
      requestContext.headers.get("x-provider-signature") ?? "",
      expected,
    );
    if (!matches || sealed === undefined) return false;
    verified.set(raw, sealed);
    return true;
  };
  /** Verifies the bytes with the provider's secret of now. */
  const verifyAgain = async (slug: string, signed: Signed) => {
    const isSlug = SLUG.test(slug);
    if (isSigned(slug, isSlug ? await secrets.read(slug) : undefined, signed)) return;
    const details = { provider: isSlug ? slug : null };
    await failures.record({ action: "PROVIDER_AUTH_FAILED", details }, signed.requestContext);
    throw new Problem("invalid_signature");
  };
  return {
    /**
     * Throws `invalid_signature`, and audits it, unless the provider signed these bytes, and for an unknown provider
     * (contract 9.1). The provider's secret may be remembered: whatever answers the request compares it.
     */
    async verify(slug: string, signed: Signed) {
      const sealed = secrets.remembered(slug);
      if (sealed === undefined || !isSigned(slug, sealed, signed)) await verifyAgain(slug, signed);
    },
    verifyAgain,
    /** The sealed secret that these bytes were verified with. */
    sealedSecretOf: (raw: Uint8Array) => verified.get(raw) ?? "",
  };
}

/** Everything that takes the events of requests whose signatures were verified. */
export function createReporting({ clock, traces, ...deps }: ProviderDeps, signatures: Signatures) {
  return {
    clock,
    traces,
    signatures,
    partners: createPartnerFinder(deps.db),
    profanity: createProfanityFinder(),
    take: createTaking({ clock, ...deps }),
  };
}

/** Takes all events of one request or none (contract 9.1). */
export async function takeEvents(
  deps: ReturnType<typeof createReporting>,
  slug: string,
  { body, ...signed }: Signed & { readonly body: unknown },
): Promise<{ accepted: number; duplicates: number }> {
  const read = readEvents(body, deps.clock.now());
  deps.traces?.came(read.events.map(({ occurredAt }) => occurredAt));
  if (read.references.length === 0) {
    // No look-up compares the secret.
    await deps.signatures.verifyAgain(slug, signed);
    throw invalid(read.fieldErrors);
  }
  // Before the transaction, because long texts take long, and all of the partners' writers wait for its locks.
  const profanity = await checkTexts(deps.profanity, read.events);
  const partners = await deps.partners(read.references.flatMap(({ siteId }) => siteId ?? []));
  const ask = () => {
    const sealedSecret = deps.signatures.sealedSecretOf(signed.raw);
    return deps.take({ slug, sealedSecret, read, profanity, partners });
  };
  let taken = await ask();
  if (taken.kind === "left" && taken.because === "secret") {
    await deps.signatures.verifyAgain(slug, signed);
    taken = await ask();
  }
  if (taken.kind === "refused") throw invalid(taken.fieldErrors);
  if (taken.kind === "left") throw unavailable();
  await taken.woken;
  return { accepted: taken.accepted, duplicates: read.events.length - taken.accepted };
}
