import type { DbOrTx, Tx } from "../../db/client.ts";
import type { Key } from "../lib/kind-key.ts";
import { holdFreeSequences, holdSequences } from "../outbox/queries.ts";
import { type Found, isInvalid } from "./admit.ts";
import {
  type AccountRequest,
  type Claim,
  claimOf,
  type IntakeRequest,
  partnersOf,
  type ProviderRequest,
  reviewKey,
  type ServiceRequest,
} from "./change.ts";
import { suppressingPartners } from "./notices.ts";
import * as queries from "./queries/look-up.ts";
import { peopleOf } from "./queries/people.ts";
import { usersNamed } from "./service-input.ts";

/** The locks that a transaction takes before the decisions about its requests. */
export interface Locks {
  /**
   * The partners whose sequences are locked. If `wait` is "nothing", the sequences for the reviews and connections that
   * the transaction finds are locked as well, so a service's request need not list its partners.
   */
  readonly partners: readonly number[];
  /**
   * The kinds of locks for which the transaction waits. It skips all other locked rows and defers the requests that
   * need them.
   */
  readonly wait: "nothing" | "sequences" | "rows and sequences";
}

/** Groups requests by the kind of their sender. */
function bySender(requests: readonly IntakeRequest[]) {
  const providers: ProviderRequest[] = [];
  const services: ServiceRequest[] = [];
  const accounts: AccountRequest[] = [];
  for (const one of requests)
    if (one.sender === "provider") providers.push(one);
    else if (one.sender === "service") services.push(one);
    else accounts.push(one);
  return { providers, services, accounts };
}

/** Returns the distinct reviews and connections that requests refer to by id. */
function subjectsOf({
  services,
  accounts,
}: Pick<ReturnType<typeof bySender>, "services" | "accounts">) {
  const subjects = services.flatMap(({ changes }) => changes.map(({ subject }) => subject));
  const reviewIds = subjects.flatMap((one) => ("reviewId" in one ? [one.reviewId] : []));
  const siteIds = subjects.flatMap((one) => ("siteId" in one ? [one.siteId] : []));
  return {
    reviewIds: [...new Set([...reviewIds, ...accounts.map((one) => one.reviewId)])],
    siteIds: [...new Set(siteIds)],
  };
}

/**
 * Returns the partners of a request that its sender may write to, in ascending order. For services they are read from
 * the database.
 */
export async function partnersNamed(db: DbOrTx, request: IntakeRequest): Promise<number[]> {
  if (request.sender !== "service") return partnersOf([request]);
  const { actsForPartners } = request;
  const all = await queries.partnersOf(db, subjectsOf({ services: [request], accounts: [] }));
  const own = all.filter((one) => actsForPartners?.includes(one) !== false);
  return own.toSorted((a, b) => a - b);
}

/**
 * Reads the state that the decisions about requests depend on, and locks the rows that will be written: connections and
 * reviews, each in the order of their ids, then the sequences of the partners. All statements are sent together.
 */
export async function readState(
  tx: Tx,
  requests: readonly IntakeRequest[],
  { partners, wait }: Locks,
): Promise<Found> {
  const { providers, services, accounts } = bySender(requests);
  const reports = providers.flatMap(reportsOf);
  const { reviewIds, siteIds } = subjectsOf({ services, accounts });
  const subjects = [
    ...reviewIds.map((reviewId) => ({ reviewId, siteId: null })),
    ...siteIds.map((siteId) => ({ reviewId: null, siteId })),
  ];
  const ids = services.flatMap(({ serviceId, changes }) =>
    changes.flatMap(({ id }) => (id === undefined ? [] : [{ serviceId, id }])),
  );
  const waits = wait !== "nothing";
  // The suppression of mails is read only for providers' requests with postings, because only these cause mails to
  // reviewers.
  const announcing = providers.filter(({ read }) =>
    read.changes.some(({ what }) => what.kind === "event" && what.isAnnounced),
  );
  // The statements are pipelined in this order. So the look-ups see the commits of those transactions for whose locks
  // the first two statements waited.
  const [, heldPartners, reported, named, claimed, people, suppressing, commands] =
    await Promise.all([
      wait === "rows and sequences" &&
        queries.waitForRows(tx, { given: reports, siteIds, reviewIds }),
      waits || services.length === 0
        ? holdSequences(tx, partners, waits)
        : holdFreeSequences(tx, { partners, ...subjectsOf({ services, accounts: [] }) }),
      reports.length === 0 ? [] : queries.lookUpReports(tx, reports),
      queries.lookUpSubjects(tx, subjects),
      queries.claimedActions(tx, ids),
      readPeople(tx, services),
      suppressingPartners(tx, partnersOf(announcing)),
      Promise.all(accounts.map(async (one) => [one, await one.read(tx)] as const)),
    ]);
  const found = {
    accepted: new Map<string, queries.LookedUpSecret>(),
    sites: new Map<number, queries.Site>(),
    heldSites: new Set<number>(),
    heldReviews: new Set<number>(),
    heldPartners,
    suppressing,
    seen: new Set<Claim>(),
    ids: new Map<Key<"review">, number>(),
    reviews: new Map<number, queries.ReviewState>(),
    newIds: new Map<Key<"review">, number>(),
    profanity: new Map(providers.flatMap((one) => [...one.profanity])),
    commands: new Map(commands),
    ...people,
  };
  for (const one of reported) {
    const { site, review, newId, knownId, slug } = one;
    if (one.sealedSecret !== null) found.accepted.set(slug, one);
    const siteId = one.siteId ?? 0;
    const key = reviewKey(siteId, one.externalReviewId ?? "");
    // The copy of a connection that was read with a lock is preferred, because it is current.
    if (site !== undefined && (one.changesSite || !found.sites.has(siteId)))
      found.sites.set(siteId, site);
    if (one.changesSite && one.isOwnSite && site === undefined) found.heldSites.add(siteId);
    if (one.isSeen && one.id !== null)
      found.seen.add(claimOf({ sender: "provider", slug }, one.id));
    if (knownId !== null) found.ids.set(key, knownId);
    if (review !== undefined) found.reviews.set(review.id, review);
    else if (knownId !== null && one.usesReview) found.heldReviews.add(knownId);
    if (newId !== null) found.newIds.set(key, newId);
  }
  for (const { reviewId, siteId, isKnown, site, review } of named) {
    if (reviewId !== null && review !== undefined) found.reviews.set(reviewId, review);
    if (reviewId !== null && review === undefined && isKnown) found.heldReviews.add(reviewId);
    if (siteId !== null && site === undefined && isKnown) found.heldSites.add(siteId);
    // The connection of a review was read without a lock. So it must not replace a copy that was read for a provider,
    // which may be locked and therefore current.
    if (site !== undefined && (siteId !== null || !found.sites.has(site.id)))
      found.sites.set(site.id, site);
  }
  for (const { serviceId, id } of claimed)
    found.seen.add(claimOf({ sender: "service", serviceId }, id));
  return found;
}

/** Returns the references of a provider's events, and the rows to lock for each. */
function reportsOf({ slug, read }: ProviderRequest): queries.LookUpRow[] {
  const writes = !isInvalid(read);
  return read.references.map(({ type, id = null, siteId = null, externalReviewId = null }) => ({
    slug,
    id,
    siteId,
    externalReviewId,
    usesReview: writes,
    createsReview: writes && type === "review.created",
    changesSite: writes && type === "connection.changed",
  }));
}

const NO_PEOPLE = { users: new Map(), owners: new Map() } satisfies Pick<Found, "users" | "owners">;

/** Reads the users that actions refer to, and the owners on whose behalf staff acts. */
async function readPeople(
  tx: Tx,
  services: readonly ServiceRequest[],
): Promise<Pick<Found, "users" | "owners">> {
  const userIds = services.flatMap(({ actions }) => usersNamed(actions));
  const byStaff = services.flatMap(({ actions }) =>
    actions.filter(({ actor }) => actor.type === "staff"),
  );
  if (userIds.length + byStaff.length === 0) return NO_PEOPLE;
  return peopleOf(tx, {
    userIds: [...new Set(userIds)],
    reviewIds: [...new Set(byStaff.flatMap((one) => one.review_id ?? []))],
    siteIds: [...new Set(byStaff.flatMap((one) => one.store_review_site_id ?? []))],
  });
}
