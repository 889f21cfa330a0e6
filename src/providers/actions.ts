import type { FailureAudit } from "../auth/audit-failures.ts";
import type { RequestContext } from "../http/request-context.ts";
import { invalid, Problem, unavailable } from "../lib/problem.ts";
import { equalInConstantTime } from "../lib/secret-box.ts";
import { hmacSha256Hex } from "../lib/secrets.ts";
import { createBatcher, type ProviderDeps } from "./batch.ts";
import { readEvents } from "./input.ts";
import { PROVIDER_SLUG, providerSecretContext } from "./model.ts";
import { checkTexts, createProfanityFinder } from "./profanity.ts";
import { createPartnerFinder, createSecretFinder } from "./queries/finders.ts";

const SLUG = new RegExp(PROVIDER_SLUG);
/**
 * The secret that verifies signatures of an unknown provider, so that its rejection takes as long as that of a known
 * provider.
 */
const DUMMY_SECRET = "there is no such provider";

interface Signed {
  readonly requestContext: RequestContext;
  readonly raw: Uint8Array;
}

const SIGNATURE = /^sha256=[0-9a-f]{64}$/;

/** Checks the form of a request's signature before its body is read. */
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
      sealed === undefined ? DUMMY_SECRET : box.open(sealed, providerSecretContext(slug));
    const expected = `sha256=${hmacSha256Hex(secret, raw)}`;
    const matches = equalInConstantTime(
      requestContext.headers.get("x-provider-signature") ?? "",
      expected,
    );
    if (!matches || sealed === undefined) return false;
    verified.set(raw, sealed);
    return true;
  };
  /** Verifies the bytes with the provider's current secret from the database. */
  const verifyAgain = async (slug: string, signed: Signed) => {
    const isSlug = SLUG.test(slug);
    if (isSigned(slug, isSlug ? await secrets.read(slug) : undefined, signed)) return;
    const details = { provider: isSlug ? slug : null };
    await failures.record({ action: "PROVIDER_AUTH_FAILED", details }, signed.requestContext);
    throw new Problem("invalid_signature");
  };
  return {
    /**
     * Verifies the provider's signature; throws and audits `invalid_signature` for a wrong one and for an unknown
     * provider (contract 9.1). The secret may be cached; the transaction that writes the events compares it again.
     */
    async verify(slug: string, signed: Signed) {
      const sealed = secrets.remembered(slug);
      if (sealed === undefined || !isSigned(slug, sealed, signed)) await verifyAgain(slug, signed);
    },
    verifyAgain,
    /** Returns the sealed secret with which these bytes were verified. */
    sealedSecretOf: (raw: Uint8Array) => verified.get(raw) ?? "",
  };
}

/** Creates the dependencies of `takeEvents`, among them the batcher. */
export function createIngestDeps({ clock, traces, ...deps }: ProviderDeps, signatures: Signatures) {
  return {
    clock,
    traces,
    signatures,
    partners: createPartnerFinder(deps.db),
    profanity: createProfanityFinder(),
    submit: createBatcher({ clock, ...deps }),
  };
}

/** Accepts all events of one request, or none of them (contract 9.1). */
export async function takeEvents(
  deps: ReturnType<typeof createIngestDeps>,
  slug: string,
  { body, ...signed }: Signed & { readonly body: unknown },
): Promise<{ accepted: number; duplicates: number }> {
  const read = readEvents(body, deps.clock.now());
  deps.traces?.came(read.events.map(({ occurredAt }) => occurredAt));
  if (read.references.length === 0) {
    // A request without references enters no batch, which would compare the secret, so the signature is verified
    // again here.
    await deps.signatures.verifyAgain(slug, signed);
    throw invalid(read.fieldErrors);
  }
  // Texts are checked before the transaction, because long texts take long and all writers of the partners would wait
  // for its locks.
  const profanity = await checkTexts(deps.profanity, read.events);
  const partners = await deps.partners(read.references.flatMap(({ siteId }) => siteId ?? []));
  const submit = () => {
    const sealedSecret = deps.signatures.sealedSecretOf(signed.raw);
    return deps.submit({ slug, sealedSecret, read, profanity, partners });
  };
  let result = await submit();
  if (result.kind === "deferred" && result.reason === "secret") {
    await deps.signatures.verifyAgain(slug, signed);
    result = await submit();
  }
  if (result.kind === "rejected") throw invalid(result.fieldErrors);
  if (result.kind === "deferred") throw unavailable();
  await result.woken;
  return { accepted: result.accepted, duplicates: read.events.length - result.accepted };
}
