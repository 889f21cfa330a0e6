import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { answerOf, type ApiClient } from "../api/client.ts";
import { eventsLike } from "../pages/events/schema-fields.ts";
import { type DeliveryFilter, isReviewId, isUlid } from "../pages/webhooks/data/filters.ts";
import {
  type CatalogEvent,
  type ListedDelivery,
  readDeliveries,
  type Subscription,
} from "../pages/webhooks/data/reads.ts";
import type { TeamUser } from "../pages/partner/data.ts";
import { roleName } from "../session/roles.ts";
import type { Area } from "../shell/page.tsx";
import { sentence } from "../ui/format.ts";
import { hasWords } from "../ui/text-query.ts";
import { operatorHits } from "./operator-hits.ts";
import { type Hit, RESULTS_PER_GROUP, type Section, tabsLike } from "./hit.ts";

// Sources of the search dialog. A source is searched only if the user's role may open the area that it belongs
// to, because the API would deny other requests.

/**
 * Minimum number of characters of a search text that is looked up as the id that a review has at its review site. All
 * such ids are longer, and each lookup costs a request per pause in typing.
 */
const ID_CHARS = 3;

/** Returns the members of the partner's team whose names or emails match the search text. */
export function teamLike(team: readonly TeamUser[], typed: string): Hit[] {
  return team
    .filter(({ name, email }) => hasWords(`${name} ${email}`, typed))
    .slice(0, RESULTS_PER_GROUP)
    .map(({ id, name, email, role }) => ({
      group: "Team",
      title: name,
      hint: `${email} · ${roleName(role)}`,
      href: `/team/${id}`,
    }));
}

/** Returns the events of the catalog whose names, descriptions or fields match the search text. */
export function catalogLike(events: readonly CatalogEvent[], typed: string): Hit[] {
  return eventsLike(events, typed)
    .slice(0, RESULTS_PER_GROUP)
    .map(({ value, description }) => ({
      group: "Event catalog",
      title: value,
      hint: description,
      href: `/events/${value}`,
    }));
}

export const guidesOptions = queryOptions({
  queryKey: ["guides"],
  queryFn: async (): Promise<readonly Section[]> => {
    const answer = await fetch("/docs/search.json");
    return answer.ok ? answer.json() : [];
  },
  staleTime: Number.POSITIVE_INFINITY,
});

/** Searches for a text after the user has typed it. The previous results stay visible until the new ones have loaded. */
export const searchOptions = (api: ApiClient, areas: readonly Area[], typed: string) =>
  queryOptions({
    queryKey: ["search", typed],
    queryFn: () => search(api, areas, typed),
    enabled: typed !== "",
    placeholderData: keepPreviousData,
  });

/** Searches the records that the user's role may see. */
async function search(
  api: ApiClient,
  areas: readonly Area[],
  typed: string,
): Promise<readonly Hit[]> {
  const has = (path: string) => areas.some((one) => one.path === path);
  const found = await Promise.all([
    has("/webhooks") ? partnerHits(api, typed) : [],
    has("/accounts") ? ownAccountHits(api, typed) : [],
    has("/reviews") ? accountHits(api, typed) : [],
    has("/services") ? operatorHits(api, typed) : [],
  ]);
  return found.flat();
}

/** Maximum length in characters of a name that the API searches for. */
const MAX_NAME_CHARS = 200;

/** Finds accounts of the partner by any part of their names. */
async function ownAccountHits(api: ApiClient, typed: string): Promise<Hit[]> {
  const query = { name: typed.slice(0, MAX_NAME_CHARS), limit: RESULTS_PER_GROUP };
  const { data } = await answerOf(api.partner.accounts.get({ query }));
  return data.map(({ id, name, plan }) => ({
    group: "Accounts",
    title: name,
    hint: `Account ${id} · ${plan.name} plan`,
    href: `/accounts/${id}`,
  }));
}

async function partnerHits(api: ApiClient, typed: string): Promise<Hit[]> {
  const { data: subscriptions } = await answerOf(
    api.partner.webhooks.get({ query: { limit: 100 } }),
  );
  const named = subscriptions.flatMap((one) => tabsLike(one, typed));
  const events = await Promise.all(subscriptions.map((one) => eventHits(api, one, typed)));
  return [...events.flat(), ...named];
}

/** Returns the number of a review that is written as pages write it: "#27" or "Review 27". */
const withoutNoun = (typed: string) => typed.replace(/^(?:review\s+)?#?(?=\d+$)/i, "");

/** Finds an event by its id, or the events of a review by the id of the review in ReviewRelay or at the review site. */
async function eventHits(api: ApiClient, one: Subscription, asked: string): Promise<Hit[]> {
  const typed = withoutNoun(asked);
  if (typed.length < ID_CHARS && !isReviewId(typed)) return [];
  const page = { limit: RESULTS_PER_GROUP };
  const filters: DeliveryFilter[] = isUlid(typed)
    ? [{ event_id: typed.toUpperCase() }]
    : [...(isReviewId(typed) ? [{ review_id: typed }] : []), { external_review_id: typed }];
  const found = await Promise.all(
    filters.map(async (filter) => {
      const { data } = await readDeliveries({ api, partnerId: undefined }, one.id, filter, page);
      const events = data.map((delivery) => eventHit(one, delivery, typed));
      return data.length < 2 || isUlid(typed) ? events : [reviewHit(one, filter, data), ...events];
    }),
  );
  return found.flat();
}

function eventHit({ id, label }: Subscription, delivery: ListedDelivery, typed: string): Hit {
  const review = delivery.external_review_id;
  return {
    group: "Events",
    title: `${delivery.event} · ${sentence(delivery.state).toLowerCase()}`,
    hint: [
      review === null ? delivery.event_id : `review ${review}`,
      ...(delivery.review_id === null ? [] : [`#${delivery.review_id}`]),
      label,
    ].join(" · "),
    href: `/webhooks/${id}/deliveries/${delivery.event_id}`,
    isExact: isUlid(typed),
  };
}

function reviewHit(
  { id, label }: Subscription,
  filter: DeliveryFilter,
  found: readonly ListedDelivery[],
): Hit {
  const [first] = found;
  return {
    group: "Reviews",
    title: `Review ${first?.external_review_id ?? first?.review_id}: all events`,
    hint: [first?.store_name, label].join(" · "),
    href: `/webhooks/${id}?${new URLSearchParams({ tab: "deliveries", ...filter })}`,
  };
}

/** Finds reviews by their id in ReviewRelay, by their id at the review site, or by their text. */
async function accountHits(api: ApiClient, asked: string): Promise<Hit[]> {
  const typed = withoutNoun(asked);
  if (typed.length < ID_CHARS && !isReviewId(typed)) return [];
  const { reviews } = api.account;
  const list = async (filter: { external_review_id?: string; q?: string }) =>
    (await answerOf(reviews.get({ query: { ...filter, limit: RESULTS_PER_GROUP } }))).data;
  const found = await Promise.all([
    isReviewId(typed) ? orNone(answerOf(reviews({ id: typed }).get())) : [],
    list({ external_review_id: typed }),
    list({ q: typed }),
  ]);
  const distinct = new Map(found.flat().map((one) => [one.id, one]));
  return [...distinct.values()].map(({ id, external_review_id: own, rate, reviewer }) => ({
    group: "Reviews",
    title: `Review ${own}`,
    hint: [`#${id}`, `${rate} ★`, reviewer].filter((part) => part !== null).join(" · "),
    href: `/reviews/${id}`,
  }));
}

/** Returns an empty list instead of an error if no object has the typed id or the user may not see it. */
async function orNone<T>(answer: Promise<T>): Promise<T[]> {
  try {
    return [await answer];
  } catch {
    return [];
  }
}
