import type { FailureAudit } from "../audit/failures.ts";
import type { Received } from "../http/checks.ts";
import type { RequestContext } from "../http/request-context.ts";
import { invalid, Problem } from "../lib/problem.ts";
import { equalInConstantTime, openingOnce } from "../lib/secrets.ts";
import { hmacSha256Hex } from "../lib/secrets.ts";
import { type Signed, refusalOf } from "./change.ts";
import type { Intake, IntakeDeps } from "./group-commit.ts";
import { charsOf, checkTexts, createProfanityFinder } from "./profanity.ts";
import { readEvents } from "./provider-input.ts";
import { PROVIDER_SLUG, providerSecretContext } from "./provider-model.ts";
import { createCredentialsFinder, createSiteFinder, type Credentials } from "./queries/finders.ts";

const SLUG_PATTERN = new RegExp(PROVIDER_SLUG);
/**
 * The secret that verifies signatures of an unknown provider, so that the rejection takes as long as for a known
 * provider.
 */
const DUMMY_SECRET = "there is no such provider";

type SignedRequest = Pick<Received, "requestContext" | "raw">;

/** Time in s by which a signed timestamp may differ from this service's clock in either direction (contract 9.1). */
const TOLERANCE_S = 300;
const UNIX_SECONDS = /^\d{1,11}$/;
const WRONG_TIME =
  "X-Provider-Timestamp must be the time of the request in Unix seconds, within 5 minutes of our clock.";
const UNVERIFIED_REQUEST: Signed = { sealedSecret: "", isTimed: false };

const SIGNATURE_PATTERN = /^sha256=[0-9a-f]{64}$/;

/** Checks the form of a request's signature before its body is read. */
export function hasSignature({ headers }: Pick<RequestContext, "headers">): boolean {
  return SIGNATURE_PATTERN.test(headers.get("x-provider-signature") ?? "");
}

export interface IngestDeps extends Pick<IntakeDeps, "box" | "db" | "clock"> {
  readonly failures: FailureAudit;
  readonly intake: Intake;
}

type SigningDeps = Omit<IngestDeps, "intake">;

type SignatureVerdict = "accepted" | "wrong signature" | "wrong timestamp";

export function createSignatures({ box, db, clock, failures }: SigningDeps) {
  const credentials = createCredentialsFinder(db, clock);
  const open = openingOnce(box);
  const verified = new WeakMap<Uint8Array, Signed>();
  const judge = (
    slug: string,
    known: Credentials | undefined,
    { requestContext: { headers }, raw }: SignedRequest,
  ): SignatureVerdict => {
    const now = clock.now();
    const timestamp = headers.get("x-provider-timestamp");
    const isOverlap = (known?.previousSecretExpiresAt ?? now) > now;
    // A missing secret is replaced by the dummy secret, so that each rejection computes two HMACs.
    const sealedSecret = [known?.sealedSecret, isOverlap ? known?.sealedPreviousSecret : null].find(
      (sealed) => {
        const secret = sealed == null ? DUMMY_SECRET : open(sealed, providerSecretContext(slug));
        const expected = `sha256=${hmacSha256Hex(secret, signedContent(timestamp, raw))}`;
        const given = headers.get("x-provider-signature") ?? "";
        return equalInConstantTime(given, expected) && sealed != null;
      },
    );
    if (sealedSecret == null) return "wrong signature";
    const isTimed = timestamp !== null;
    if (isTimed ? !isRecent(timestamp, now) : known?.requiresTimestamp) return "wrong timestamp";
    verified.set(raw, { sealedSecret, isTimed });
    return "accepted";
  };
  /** Verifies a request's signature with the provider's current secrets from the database. */
  const verifyAgain = async (slug: string, signed: SignedRequest) => {
    const isSlug = SLUG_PATTERN.test(slug);
    const verdict = judge(slug, isSlug ? await credentials.read(slug) : undefined, signed);
    if (verdict === "accepted") return;
    const isTime = verdict === "wrong timestamp";
    const details = { provider: isSlug ? slug : null, ...(isTime && { reason: "timestamp" }) };
    await failures.record({ action: "PROVIDER_AUTH_FAILED", details }, signed.requestContext);
    throw new Problem("invalid_signature", isTime ? { message: WRONG_TIME } : {});
  };
  return {
    /**
     * Verifies the provider's signature. For a wrong signature or an unknown provider, audits and throws
     * `invalid_signature` (contract 9.1). The secrets may come from a cache; the transaction that writes the events
     * compares them again.
     */
    async verify(slug: string, signed: SignedRequest) {
      const known = credentials.remembered(slug);
      if (known === undefined || judge(slug, known, signed) !== "accepted")
        await verifyAgain(slug, signed);
    },
    verifyAgain,
    /** Returns the secret with which these bytes were verified, and whether a timestamp was signed. */
    signedOf: (raw: Uint8Array) => verified.get(raw) ?? UNVERIFIED_REQUEST,
  };
}

/** Returns the bytes that a signature covers: the body, after the timestamp if the request has one (contract 9.1). */
function signedContent(timestamp: string | null, raw: Uint8Array): Uint8Array {
  return timestamp === null ? raw : Buffer.concat([Buffer.from(`${timestamp}.`), raw]);
}

/** Returns whether a timestamp in Unix seconds is within the tolerance of this service's clock, in whole seconds. */
function isRecent(timestamp: string, now: Date): boolean {
  const ageS = Math.floor(now.getTime() / 1000) - Number(timestamp);
  return UNIX_SECONDS.test(timestamp) && Math.abs(ageS) <= TOLERANCE_S;
}

export function createIngestDeps(deps: IngestDeps) {
  return {
    clock: deps.clock,
    intake: deps.intake,
    signatures: createSignatures(deps),
    sites: createSiteFinder(deps.db),
    profanity: createProfanityFinder(),
  };
}

/** Accepts all events of one request, or none of them (contract 9.1). */
export async function acceptEvents(
  deps: ReturnType<typeof createIngestDeps>,
  slug: string,
  { body, ...signed }: SignedRequest & { readonly body: unknown },
): Promise<{ accepted: number; duplicates: number }> {
  const read = readEvents(body, deps.clock.now());
  if (read.references.length === 0) {
    // The signature is verified again here, because a request without references is not added to a batch. For every
    // other request, its batch compares the secret with the current ones.
    await deps.signatures.verifyAgain(slug, signed);
    throw invalid(read.fieldErrors);
  }
  // Texts are checked before the transaction. The check of long texts takes long, and all writers of the partners would
  // wait for the transaction's locks.
  const profanity = await checkTexts(deps.profanity, read.changes);
  const sites = await deps.sites(read.references.flatMap(({ siteId }) => siteId ?? []));
  const chars = charsOf(read.changes);
  const submit = () => {
    const by = { sender: "provider", slug, signed: deps.signatures.signedOf(signed.raw) } as const;
    return deps.intake({ ...by, read, profanity, sites, chars });
  };
  let answer = await submit();
  if (answer.kind === "deferred") {
    await deps.signatures.verifyAgain(slug, signed);
    answer = await submit();
  }
  if (answer.kind !== "accepted") throw refusalOf(answer);
  return { accepted: answer.accepted, duplicates: read.changes.length - answer.accepted };
}
