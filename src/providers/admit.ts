import { referenceFaults } from "./decide.ts";
import type { ReadEvents } from "./input.ts";
import type { CheckedTexts } from "./profanity.ts";
import { reviewKey, type ProviderEvent, type ReviewState, type Site } from "./model.ts";

/** A request as it waits for a group: without a fault of its own. */
export interface Asking {
  readonly slug: string;
  readonly read: ReadEvents;
  readonly profanity: CheckedTexts;
}

/** What a group has looked up of all its requests before it writes. */
export interface Found {
  readonly sites: ReadonlyMap<number, Site & { readonly slug: string }>;
  /** Partners of which somebody else holds a sequence. */
  readonly heldPartners: ReadonlySet<number>;
  /** By `claimKey`: ids that were claimed before. */
  readonly seen: ReadonlySet<string>;
  /** By `reviewKey`: all that exist of those that are referred to. */
  readonly existing: ReadonlySet<string>;
  /** By `reviewKey`: those of them that this group holds. */
  readonly reviews: ReadonlyMap<string, ReviewState>;
  /** By `reviewKey`: the ids of those that do not exist and may be created. */
  readonly newIds: ReadonlyMap<string, number>;
}

export type Admission =
  | { readonly kind: "admitted"; readonly fresh: readonly ProviderEvent[] }
  /** It would wait for what somebody else holds. */
  | { readonly kind: "held"; readonly partners: readonly number[] }
  /** There is something to refuse. */
  | { readonly kind: "faulty" };

export function claimKey(slug: string, id: string): string {
  return `${slug}:${id}`;
}

/**
 * Which requests stay in the group, in the order in which they came: a later one sees what those before it claim and
 * create, and nothing of one that leaves.
 */
export function admit(asked: readonly Asking[], found: Found): Admission[] {
  const claimed = new Set(found.seen);
  const existing = new Set(found.existing);
  return asked.map(({ slug, read }) => {
    const fresh = freshOf(read.events, slug, claimed);
    const sites = ownSites(fresh, slug, found.sites);
    const partners = [...new Set([...sites.values()].map(({ partnerId }) => partnerId))];
    const isHeld = (key: string) => found.existing.has(key) && !found.reviews.has(key);
    if (partners.some((one) => found.heldPartners.has(one)) || keysOf(fresh).some(isHeld))
      return { kind: "held", partners };
    const indexes = new Set(fresh.map(({ index }) => index));
    const references = read.references.filter(({ index }) => indexes.has(index));
    const faults = referenceFaults(references, { sites, reviews: existing, created: NONE });
    if (Object.keys(faults).length > 0) return { kind: "faulty" };
    for (const { id } of fresh) claimed.add(claimKey(slug, id));
    for (const key of keysOf(fresh)) existing.add(key);
    return { kind: "admitted", fresh };
  });
}

const NONE: ReadonlySet<string> = new Set();

/** The events whose ids were never seen before, and of several with one id the first. */
function freshOf(
  events: readonly ProviderEvent[],
  slug: string,
  claimed: ReadonlySet<string>,
): ProviderEvent[] {
  const first = new Map<string, ProviderEvent>();
  for (const event of events) {
    const key = claimKey(slug, event.id);
    if (!claimed.has(key) && !first.has(key)) first.set(key, event);
  }
  return [...first.values()];
}

function ownSites(
  events: readonly ProviderEvent[],
  slug: string,
  sites: Found["sites"],
): ReadonlyMap<number, Site> {
  const own = events.flatMap(({ siteId }) => sites.get(siteId) ?? []);
  return new Map(own.filter((one) => one.slug === slug).map((one) => [one.id, one]));
}

function keysOf(events: readonly ProviderEvent[]): string[] {
  return events.flatMap((event) =>
    event.type === "connection.changed" ? [] : [reviewKey(event.siteId, event.externalReviewId)],
  );
}
