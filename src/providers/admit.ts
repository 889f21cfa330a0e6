import type { FieldErrors } from "../lib/problem.ts";
import { type Known, referenceErrors } from "./decide.ts";
import type { ReadEvents } from "./input.ts";
import { type ProviderEvent, type Reference, reviewKey } from "./model.ts";

/** A request as it waits for a group. */
export interface Asking {
  readonly slug: string;
  /** The secret of the provider that the request is signed with. */
  readonly sealedSecret: string;
  readonly read: ReadEvents;
  /** The profane words of each text. */
  readonly profanity: Known["profanity"];
  /** To whom the connections that it names belong. */
  readonly partners: readonly number[];
}

/** What a group has looked up of all its requests before it writes; of the reviews those that it holds. */
export interface Found extends Omit<Known, "profanity"> {
  /** By slug: the secrets of the providers. */
  readonly sealedSecrets: ReadonlyMap<string, string>;
  /** Connections that are to change and somebody else holds. */
  readonly heldSites: ReadonlySet<number>;
  /** Partners of which somebody else holds a sequence. */
  readonly heldPartners: ReadonlySet<number>;
  /** By `claimKey`: ids that were claimed before. */
  readonly seen: ReadonlySet<string>;
  /** By `reviewKey`: all that exist of those that are referred to. */
  readonly existing: ReadonlySet<string>;
}

export type Admission =
  | { readonly kind: "admitted"; readonly fresh: readonly ProviderEvent[] }
  /** It would wait for what somebody else holds, or the provider has another secret by now. */
  | { readonly kind: "left"; readonly because: "sequence" | "row" | "secret" }
  | { readonly kind: "refused"; readonly fieldErrors: FieldErrors };

export function claimKey(slug: string, id: string): string {
  return `${slug}:${id}`;
}

export function isInvalid({ fieldErrors }: ReadEvents): boolean {
  return Object.keys(fieldErrors).length > 0;
}

/**
 * Which requests stay in the group, in the order in which they came: a later one sees what those before it claim and
 * create, and nothing of one that leaves or is refused. One refusal names what is wrong with every event, by itself and
 * by what it refers to.
 */
export function admit(asked: readonly Asking[], found: Found): Admission[] {
  const claimed = new Set(found.seen);
  const existing = new Set(found.existing);
  return asked.map(({ slug, sealedSecret, read, partners }) => {
    if (found.sealedSecrets.get(slug) !== sealedSecret) return { kind: "left", because: "secret" };
    const isFresh = freshIn(read, slug, claimed);
    const fresh = read.events.filter(isFresh);
    // It writes nothing, whatever is held.
    if (!isInvalid(read)) {
      if (fresh.length > 0 && partners.some((one) => found.heldPartners.has(one)))
        return { kind: "left", because: "sequence" };
      if (fresh.some((event) => isHeld(event, found))) return { kind: "left", because: "row" };
    }
    const references = read.references.filter(isFresh);
    const siteOf = (id: number) => {
      const site = found.sites.get(id);
      return site?.slug === slug ? site : undefined;
    };
    const fieldErrors = { ...referenceErrors(references, siteOf, existing), ...read.fieldErrors };
    if (Object.keys(fieldErrors).length > 0) return { kind: "refused", fieldErrors };
    for (const event of fresh) {
      claimed.add(claimKey(slug, event.id));
      if (event.type !== "connection.changed")
        existing.add(reviewKey(event.siteId, event.externalReviewId));
    }
    return { kind: "admitted", fresh };
  });
}

/**
 * Tells the events whose ids were never seen before, and of several with one id the first. The rest are duplicates,
 * whatever they refer to by now (contract 9.1).
 */
function freshIn(
  { references }: ReadEvents,
  slug: string,
  claimed: ReadonlySet<string>,
): (event: Pick<Reference, "id" | "index">) => boolean {
  const first = new Map(references.toReversed().map(({ id, index }) => [id, index]));
  return ({ id, index }) =>
    id === undefined || (first.get(id) === index && !claimed.has(claimKey(slug, id)));
}

function isHeld(event: ProviderEvent, found: Found): boolean {
  if (event.type === "connection.changed") return found.heldSites.has(event.siteId);
  const key = reviewKey(event.siteId, event.externalReviewId);
  return found.existing.has(key) && !found.reviews.has(key);
}
