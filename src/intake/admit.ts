import type { Key } from "../lib/kind-key.ts";
import type { RecordedAction } from "../outbox/event.ts";
import {
  type AccountRequest,
  type Change,
  type Claim,
  claimOf,
  type Decision,
  type IntakeRequest,
  partnersOf,
  type ProviderRequest,
  type ReadEvents,
  type Reference,
  reviewKey,
  type Rule,
  type ServiceRequest,
  type Signed,
} from "./change.ts";
import { apply, type Draft, draftOf, type Known, reviewIdOf } from "./decide.ts";
import type { LookedUpSecret, Site } from "./queries/look-up.ts";
import type { Person } from "./queries/people.ts";
import { resolveAction } from "./service-input.ts";

/** The state that is read for a batch of requests before the decisions about them. */
export interface Found extends Known {
  /** Maps each provider slug to the credentials that are valid now. */
  readonly accepted: ReadonlyMap<string, LookedUpSecret>;
  /** Connections that a change would write, but that another transaction has locked. */
  readonly heldSites: ReadonlySet<number>;
  /** Existing reviews that another transaction has locked. */
  readonly heldReviews: ReadonlySet<number>;
  /** Partners with a sequence that another transaction has locked. */
  readonly heldPartners: ReadonlySet<number>;
  /** Ids of changes that earlier requests have used. */
  readonly seen: ReadonlySet<Claim>;
  /** The users that actions of services refer to, by their ids. */
  readonly users: ReadonlyMap<number, Person>;
  /** The owners on whose behalf staff acts, by the ids of the owners' accounts. */
  readonly owners: ReadonlyMap<number, Person>;
  /** The functions that decide about the requests of accounts. Each has already read the data that it needs. */
  readonly commands: ReadonlyMap<AccountRequest, Rule>;
}

/** The new ids of changes, which are stored so that a repeated change is recognised. */
interface Claims {
  readonly ofProviders: { readonly slug: string; readonly id: string }[];
  readonly ofServices: { readonly serviceId: number; readonly id: string }[];
}

/** The decisions about the requests of a batch, and the changes to write. */
export interface Decided {
  readonly draft: Draft;
  /** The decisions, in the order of the requests. */
  readonly decisions: readonly Decision[];
  readonly claims: Claims;
}

/** A change together with its actor; without an actor the review site acts. */
interface AdmittedChange {
  readonly change: Change;
  readonly actor?: RecordedAction["actor"];
}

/** The changes of a request that are new and valid, or the decision if the request is deferred or refused. */
type Admission = Exclude<Decision, { kind: "accepted" }> | readonly AdmittedChange[];

const deferral = (reason: "sequence" | "row" | "secret") => ({ kind: "deferred", reason }) as const;

/**
 * Decides about the requests of a batch in the order of their arrival, and applies the changes of the accepted ones to
 * the draft. A later request sees the ids and effects of accepted requests before it, and no others.
 */
export function decideRequests(
  requests: readonly IntakeRequest[],
  found: Found,
  now: Date,
): Decided {
  const draft = draftOf(found, now);
  const claimed = new Set(found.seen);
  const claims: Claims = { ofProviders: [], ofServices: [] };
  const decisions = requests.map((request): Decision => {
    const admission = admit(request, found, { draft, claimed });
    if ("kind" in admission) return admission;
    let unchanged = 0;
    for (const { change, actor } of admission) {
      const effect = apply(draft, change, actor);
      if (typeof effect === "object") return { ...effect, kind: "refused" };
      if (effect === "unchanged") unchanged++;
      const { id } = change;
      if (id === undefined || request.sender === "account") continue;
      claimed.add(claimOf(request, id));
      if (request.sender === "provider") claims.ofProviders.push({ slug: request.slug, id });
      else claims.ofServices.push({ serviceId: request.serviceId, id });
    }
    const review = request.sender === "account" ? draft.reviews.get(request.reviewId) : undefined;
    return {
      kind: "accepted",
      accepted: admission.length,
      unchanged,
      ...(review !== undefined && { review }),
    };
  });
  return { draft, decisions, claims };
}

/** The state of a batch while its requests are decided. */
interface BatchProgress {
  readonly draft: Draft;
  readonly claimed: ReadonlySet<Claim>;
}

function admit(request: IntakeRequest, found: Found, progress: BatchProgress): Admission {
  switch (request.sender) {
    case "provider":
      return admitProvider(request, found, progress);
    case "service":
      return admitService(request, found, progress);
    case "account":
      return admitAccount(request, found);
  }
}

export function isInvalid({ fieldErrors }: ReadEvents): boolean {
  return Object.keys(fieldErrors).length > 0;
}

/** Checks a provider's request. A refusal lists the errors of every event, including references to missing rows. */
function admitProvider(
  request: ProviderRequest,
  found: Found,
  { draft, claimed }: BatchProgress,
): Admission {
  const { slug, signed, read } = request;
  if (!isStillAccepted(signed, found.accepted.get(slug))) return deferral("secret");
  const isNew = newEventsIn(request, claimed);
  const changes = read.changes.filter(isNew);
  // A lock defers only a valid request, because an invalid one is refused and writes nothing.
  if (!isInvalid(read)) {
    if (changes.length > 0 && partnersOf([request]).some((one) => found.heldPartners.has(one)))
      return deferral("sequence");
    if (changes.some((change) => isHeld(change, found, draft))) return deferral("row");
  }
  const siteOf = (id: number) => {
    const site = draft.sites.get(id);
    return site?.slug === slug ? site : undefined;
  };
  const references = read.references.filter(isNew);
  const isReview = (key: Key<"review">) => draft.ids.has(key);
  const errors = { ...referenceErrors(references, siteOf, isReview), ...read.fieldErrors };
  if (Object.keys(errors).length > 0) return { kind: "refused", code: "validation_failed", errors };
  return changes.map((change) => ({ change }));
}

/**
 * Returns whether the provider's current credentials still accept the signature. The signature was verified with cached
 * credentials, which may be outdated.
 */
function isStillAccepted({ sealedSecret, isTimed }: Signed, accepted: LookedUpSecret | undefined) {
  if (accepted === undefined || (accepted.requiresTimestamp && !isTimed)) return false;
  return [accepted.sealedSecret, accepted.sealedPreviousSecret].includes(sealedSecret);
}

/**
 * Returns a predicate for events with new ids. If several events of the request have the same id, only the first one is
 * new. The others are duplicates, and their references are not checked (contract 9.1).
 */
function newEventsIn(
  request: ProviderRequest,
  claimed: ReadonlySet<Claim>,
): (event: Pick<Reference, "id" | "index">) => boolean {
  const { references } = request.read;
  const first = new Map(references.toReversed().map(({ id, index }) => [id, index]));
  return ({ id, index }) =>
    id === undefined || (first.get(id) === index && !claimed.has(claimOf(request, id)));
}

function isHeld(
  { subject }: Pick<Change, "subject">,
  { heldSites, heldReviews }: Found,
  draft: Draft,
): boolean {
  const id = reviewIdOf(draft, subject);
  if (id !== undefined) return heldReviews.has(id);
  return (
    "siteId" in subject && subject.externalReviewId === undefined && heldSites.has(subject.siteId)
  );
}

/** Stands for the site in a `reviewKey` if the event refers to no known site. */
const UNKNOWN_SITE = 0;

/**
 * Returns field errors for events that refer to a connection or review that does not exist. An event that would create
 * a review counts as creating it, even if the event has other errors. Otherwise a later event of the same review would
 * get a second, misleading error.
 */
export function referenceErrors(
  references: readonly Reference[],
  siteOf: (id: number) => Pick<Site, "id"> | undefined,
  isReview: (key: Key<"review">) => boolean,
): Record<string, string[]> {
  const fieldErrors: Record<string, string[]> = {};
  const begun = new Set<Key<"review">>();
  for (const { index, type, siteId, externalReviewId } of references) {
    const site = siteId === undefined ? undefined : siteOf(siteId);
    if (siteId !== undefined && site === undefined)
      fieldErrors[`events.${index}.store_review_site_id`] = [
        "is not a store's connection with this provider",
      ];
    if (externalReviewId === undefined) continue;
    const key = reviewKey(site?.id ?? UNKNOWN_SITE, externalReviewId);
    if (type === undefined || type === "review.created") begun.add(key);
    else if (site !== undefined) {
      const own = [key, reviewKey(UNKNOWN_SITE, externalReviewId)];
      if (isReview(key) || own.some((one) => begun.has(one))) continue;
      const inReview = type === "review.updated" || type === "review.removed";
      fieldErrors[`events.${index}.${inReview ? "review." : ""}external_review_id`] = [
        "is not a review of this site",
      ];
    }
  }
  return fieldErrors;
}

/**
 * Checks a service's request. A refusal lists those references in its actions that lead to no row, or to a row that
 * does not fit the action.
 */
function admitService(
  request: ServiceRequest,
  found: Found,
  { draft, claimed }: BatchProgress,
): Admission {
  const { actions, changes, actsForPartners } = request;
  if (changes.some((change) => isHeld(change, found, draft))) return deferral("row");
  const errors: Record<string, string[]> = {};
  const partners = new Set<number>();
  const placed = changes.flatMap((change, i): AdmittedChange[] => {
    const action = actions[i];
    if (action === undefined) return [];
    // References are resolved with existing rows only: no client can know the id of a review that this batch creates.
    const one = resolveAction(action, found);
    if ("errors" in one) {
      for (const [field, text] of Object.entries(one.errors))
        errors[`actions.${change.index}.${field}`] = [text];
      return [];
    }
    partners.add(one.partnerId);
    return [{ change, actor: one.actor }];
  });
  if (Object.keys(errors).length > 0) return { kind: "refused", code: "validation_failed", errors };
  const foreign = [...partners].filter((one) => actsForPartners?.includes(one) === false);
  if (foreign.length > 0) return { kind: "foreign", partnerIds: foreign };
  const fresh = placed.filter(
    ({ change: { id } }) => id === undefined || !claimed.has(claimOf(request, id)),
  );
  if (fresh.length > 0 && [...partners].some((one) => found.heldPartners.has(one)))
    return deferral("sequence");
  return fresh;
}

function admitAccount(request: AccountRequest, found: Found): Admission {
  const { reviewId, partnerId, actor, at: occurredAt } = request;
  const decide = found.commands.get(request);
  if (found.heldPartners.has(partnerId)) return deferral("sequence");
  if (found.heldReviews.has(reviewId)) return deferral("row");
  if (decide === undefined || !found.reviews.has(reviewId))
    return { kind: "refused", code: "not_found" };
  const what = { kind: "command", decide } as const;
  return [{ change: { index: 0, id: undefined, subject: { reviewId }, what, occurredAt }, actor }];
}
