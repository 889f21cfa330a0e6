import { type Key, keyOf } from "../lib/kind-key.ts";
import type { FieldErrors } from "../lib/problem.ts";
import { type Known, referenceErrors } from "./decide.ts";
import type { ReadEvents, Reference } from "./input.ts";
import { type ProviderEvent, reviewKey } from "./model.ts";
import type { LookedUp, Site } from "./queries/look-up.ts";

/** How a request was verified: with which sealed secret, and whether its signature covered a timestamp. */
export interface Signed {
  readonly sealedSecret: string;
  readonly isTimed: boolean;
}

/** The secrets that verify a provider's requests now; a previous one stays until maintenance removes it. */
type Accepted = Pick<LookedUp, "sealedSecret" | "sealedPreviousSecret" | "requiresTimestamp">;

/** A request of a provider that waits for a batch. */
export interface ProviderRequest {
  readonly slug: string;
  readonly signed: Signed;
  readonly read: ReadEvents;
  /** Maps each text of the request to the profane words in it. */
  readonly profanity: Known["profanity"];
  /** The connections named in the request, by their ids. Their axes are as they were when they were first read. */
  readonly sites: ReadonlyMap<number, Site>;
}

/** All data that a batch reads before it writes. `reviews` has only the rows that this transaction has locked. */
export interface BatchLookup extends Known {
  /** Maps each provider slug to what the provider's requests are verified with. */
  readonly accepted: ReadonlyMap<string, Accepted>;
  /** Connections that an event changes and another transaction has locked. */
  readonly heldSites: ReadonlySet<number>;
  /** Partners with a sequence that another transaction has locked. */
  readonly heldPartners: ReadonlySet<number>;
  /** Event ids that earlier requests have claimed, as `claimKey`. */
  readonly seen: ReadonlySet<Key<"provider-event">>;
  /** All existing reviews that the requests refer to, as `reviewKey`. */
  readonly existing: ReadonlySet<Key<"review">>;
}

export type BatchDecision =
  | { readonly kind: "accepted"; readonly newEvents: readonly ProviderEvent[] }
  /** The request needs a lock that another transaction holds, or the provider's secret has changed. */
  | { readonly kind: "deferred"; readonly reason: "sequence" | "row" | "secret" }
  | { readonly kind: "rejected"; readonly fieldErrors: FieldErrors };

/** The result of one request. Its events are written only if the request was accepted. */
export type RequestResult =
  | { readonly kind: "accepted"; readonly accepted: number }
  | Exclude<BatchDecision, { kind: "accepted" }>
  /** The batch could not be written. `lost` is what it decided, if the answer to its commit was lost. */
  | { readonly kind: "deferred"; readonly reason: "write"; readonly lost?: BatchDecision };

export function claimKey(slug: string, id: string): Key<"provider-event"> {
  return keyOf("provider-event", slug, id);
}

/** Returns the partners that own the connections named in requests, each once and in their order. */
export function partnersOf(requests: readonly Pick<ProviderRequest, "sites">[]): number[] {
  const all = requests.flatMap(({ sites }) => [...sites.values()].map((one) => one.partnerId));
  return [...new Set(all)].toSorted((a, b) => a - b);
}

export function isInvalid({ fieldErrors }: ReadEvents): boolean {
  return Object.keys(fieldErrors).length > 0;
}

/**
 * Decides in order of arrival which requests of a batch are accepted. A later request sees the ids and reviews of the
 * accepted ones before it, and nothing of deferred or rejected ones. A rejection lists the field errors of every
 * event, including references that do not exist.
 */
export function decideBatch(
  requests: readonly ProviderRequest[],
  found: BatchLookup,
): BatchDecision[] {
  const claimed = new Set(found.seen);
  const existing = new Set(found.existing);
  return requests.map((request) => {
    const { slug, signed, read } = request;
    if (!isStillAccepted(signed, found.accepted.get(slug)))
      return { kind: "deferred", reason: "secret" };
    const isNew = newEventsIn(read, slug, claimed);
    const newEvents = read.events.filter(isNew);
    // Locks defer only a valid request, because a rejected one writes nothing.
    if (!isInvalid(read)) {
      if (newEvents.length > 0 && partnersOf([request]).some((one) => found.heldPartners.has(one)))
        return { kind: "deferred", reason: "sequence" };
      if (newEvents.some((event) => isHeld(event, found)))
        return { kind: "deferred", reason: "row" };
    }
    const references = read.references.filter(isNew);
    const siteOf = (id: number) => {
      const site = found.sites.get(id);
      return site?.slug === slug ? site : undefined;
    };
    const fieldErrors = { ...referenceErrors(references, siteOf, existing), ...read.fieldErrors };
    if (Object.keys(fieldErrors).length > 0) return { kind: "rejected", fieldErrors };
    for (const event of newEvents) {
      claimed.add(claimKey(slug, event.id));
      if (event.type !== "connection.changed")
        existing.add(reviewKey(event.siteId, event.externalReviewId));
    }
    return { kind: "accepted", newEvents };
  });
}

/** Whether the provider's settings still accept a signature that was verified with remembered ones. */
function isStillAccepted({ sealedSecret, isTimed }: Signed, accepted: Accepted | undefined) {
  if (accepted === undefined || (accepted.requiresTimestamp && !isTimed)) return false;
  return [accepted.sealedSecret, accepted.sealedPreviousSecret].includes(sealedSecret);
}

/**
 * Returns a predicate for events whose id was never claimed; if several events share an id, only the first passes.
 * The rest are duplicates and their references are not checked (contract 9.1).
 */
function newEventsIn(
  { references }: ReadEvents,
  slug: string,
  claimed: ReadonlySet<Key<"provider-event">>,
): (event: Pick<Reference, "id" | "index">) => boolean {
  const first = new Map(references.toReversed().map(({ id, index }) => [id, index]));
  return ({ id, index }) =>
    id === undefined || (first.get(id) === index && !claimed.has(claimKey(slug, id)));
}

function isHeld(event: ProviderEvent, found: BatchLookup): boolean {
  if (event.type === "connection.changed") return found.heldSites.has(event.siteId);
  const key = reviewKey(event.siteId, event.externalReviewId);
  return found.existing.has(key) && !found.reviews.has(key);
}
