import { Combobox, Text, TextInput, useCombobox } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useLocation } from "wouter";

import { answerOf, type ApiClient } from "../api/client.ts";
import { eventsLike } from "../pages/events/schema-fields.ts";
import { isReviewId, isUlid, type DeliveryFilter } from "../pages/webhooks/data/filters.ts";
import { type ListedDelivery, readDeliveries } from "../pages/webhooks/data/list-reads.ts";
import {
  type CatalogEvent,
  catalogOptions,
  type Subscription,
} from "../pages/webhooks/data/reads.ts";
import { useApi, useSession } from "../session/session.tsx";
import type { Area } from "../shell/page.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { sentence } from "../ui/format.ts";
import { Icon, type IconName } from "../ui/icon.tsx";
import { hasWords } from "../ui/text-query.ts";
import {
  guidesLike,
  type Hit,
  isGuide,
  RESULTS_PER_GROUP,
  type Section,
  tabsLike,
  topicsLike,
} from "./hit.ts";

const TYPING_MS = 200;
const ICONS: Readonly<Record<Hit["group"], IconName>> = {
  Pages: "chevronRight",
  "Settings and actions": "edit",
  Events: "send",
  Reviews: "star",
  Subscriptions: "webhook",
  Users: "user",
  "Event catalog": "catalog",
  Documentation: "book",
};

interface PaletteProps {
  readonly areas: readonly Area[];
  readonly onClose: () => void;
}

/** Search dialog for pages, events, reviews, users and guides, usable by keyboard alone. */
export function Palette({ areas, onClose }: PaletteProps) {
  const [text, setText] = useState("");
  const { hits, isLooking } = useHits(areas, text.trim());
  const go = useGo(onClose);
  const combobox = useCombobox({ opened: true });
  const found = hits.map(({ href }) => href).join(" ");
  // Selects the first result, so that Enter opens it without a preceding arrow key.
  useEffect(() => {
    if (found !== "") combobox.selectFirstOption();
    // oxlint-disable-next-line react/exhaustive-deps -- the combobox is a new object in every render.
  }, [found]);
  return (
    <Dialog opened onClose={onClose} title="Search" size="lg" yOffset="10vh">
      <Combobox
        store={combobox}
        withinPortal={false}
        onOptionSubmit={(index) => {
          const hit = hits[Number(index)];
          if (hit !== undefined) go(hit);
        }}
      >
        <Combobox.EventsTarget withExpandedAttribute>
          <TextInput
            data-autofocus
            label="What are you looking for?"
            placeholder="Page, setting, or id of an event or review"
            leftSection={<Icon name="search" size={16} />}
            spellCheck={false}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            // Closes the dialog on Escape. Mantine's combobox would otherwise consume the key to close its own
            // dropdown.
            onKeyDown={(event) => event.key === "Escape" && onClose()}
          />
        </Combobox.EventsTarget>
        <Text size="xs" c="dimmed" my="xs" aria-live="polite">
          {resultStatus(text.trim(), hits.length, isLooking)}
        </Text>
        <Combobox.Options mah="55vh" style={{ overflowY: "auto" }} aria-label="Found">
          {groupsOf(hits).map(([group, own]) => (
            <Combobox.Group key={group} label={group}>
              {own.map(({ hit, index }) => (
                <Combobox.Option
                  key={`${hit.title} ${hit.href}`}
                  value={String(index)}
                  className="hit"
                >
                  <Icon name={ICONS[hit.group]} size={16} />
                  <div className="shrinks">
                    <Text size="sm" truncate>
                      {hit.title}
                    </Text>
                    {hit.hint !== "" && <span className="finding">{hit.hint}</span>}
                  </div>
                </Combobox.Option>
              ))}
            </Combobox.Group>
          ))}
        </Combobox.Options>
      </Combobox>
    </Dialog>
  );
}

function groupsOf(hits: readonly Hit[]) {
  const numbered = hits.map((hit, index) => ({ hit, index }));
  return [...Map.groupBy(numbered, ({ hit }) => hit.group)];
}

function resultStatus(typed: string, count: number, isLooking: boolean): string {
  if (isLooking) return "Searching …";
  if (typed === "") return "Use the arrow keys to select, Enter to open and Escape to close.";
  return count === 0 ? "No results." : `${count} found.`;
}

/** Returns a function that opens a search result. Guides open in a new tab, as they do from the navigation menu. */
function useGo(onClose: () => void) {
  const [, navigate] = useLocation();
  return (hit: Hit) => {
    onClose();
    if (isGuide(hit)) window.open(hit.href, "_blank", "noopener");
    else navigate(hit.href);
  };
}

function useHits(areas: readonly Area[], typed: string) {
  const api = useApi();
  const { role } = useSession().user;
  const [query] = useDebouncedValue(typed, TYPING_MS);
  const guides = useQuery({ queryKey: ["guides"], queryFn: readGuides, staleTime: Infinity });
  const found = useQuery({
    queryKey: ["search", query],
    queryFn: () => search(api, areas, query),
    enabled: query !== "",
    placeholderData: keepPreviousData,
  });
  const catalog = useQuery({
    ...catalogOptions({ api, partnerId: undefined }),
    enabled: areas.some(({ path }) => path === "/events"),
  });
  const pages = pagesLike(areas, typed);
  if (typed === "") return { hits: pages, isLooking: false };
  const records = query === typed && !found.isPlaceholderData ? (found.data ?? []) : [];
  const events = catalogLike(catalog.data?.events ?? [], typed);
  const topics = topicsLike(areas, role, typed);
  const hits = [
    ...records,
    ...pages,
    ...topics,
    ...events,
    ...guidesLike(guides.data ?? [], typed),
  ];
  return { hits, isLooking: query !== typed || found.isFetching };
}

// Sources of the search dialog. A source is searched only if the user's role may open the area that it belongs
// to, because the API would deny other requests.

/**
 * Minimum number of characters of a search text that is looked up as the id that a review has at its review site. All
 * such ids are longer, and each lookup costs a request per pause in typing.
 */
const ID_CHARS = 3;

/** Returns the pages in the navigation menu whose titles match the search text. */
function pagesLike(areas: readonly Area[], typed: string): Hit[] {
  return areas
    .filter(({ title }) => hasWords(title, typed))
    .map(({ path, title }) => ({ group: "Pages", title, hint: "", href: path }));
}

/** Returns the events of the catalog whose names, descriptions or fields match the search text. */
function catalogLike(events: readonly CatalogEvent[], typed: string): Hit[] {
  return eventsLike(events, typed)
    .slice(0, RESULTS_PER_GROUP)
    .map(({ value, description }) => ({
      group: "Event catalog",
      title: value,
      hint: description,
      href: `/events/${value}`,
    }));
}

async function readGuides(): Promise<readonly Section[]> {
  const answer = await fetch("/docs/search.json");
  return answer.ok ? answer.json() : [];
}

/** Searches events, subscriptions, reviews and users. Omits those whose area the user's role may not open. */
async function search(
  api: ApiClient,
  areas: readonly Area[],
  typed: string,
): Promise<readonly Hit[]> {
  const has = (path: string) => areas.some((one) => one.path === path);
  const found = await Promise.all([
    has("/webhooks") ? partnerHits(api, typed) : [],
    has("/reviews") ? accountHits(api, typed) : [],
    has("/users") ? operatorHits(api, typed) : [],
  ]);
  return found.flat();
}

async function partnerHits(api: ApiClient, typed: string): Promise<Hit[]> {
  const { data: subscriptions } = await answerOf(
    api.partner.webhooks.get({ query: { limit: 100 } }),
  );
  const named = subscriptions.flatMap((one) => tabsLike(one, typed));
  const events = await Promise.all(subscriptions.map((one) => eventHits(api, one, typed)));
  return [...events.flat(), ...named];
}

/** Finds an event by its id, or the events of a review by the id of the review in ReviewRelay or at the review site. */
async function eventHits(api: ApiClient, one: Subscription, typed: string): Promise<Hit[]> {
  if (typed.length < ID_CHARS && !isReviewId(typed)) return [];
  const page = { limit: RESULTS_PER_GROUP };
  const filters: DeliveryFilter[] = isUlid(typed)
    ? [{ event_id: typed.toUpperCase() }]
    : [...(isReviewId(typed) ? [{ review_id: typed }] : []), { external_review_id: typed }];
  const found = await Promise.all(
    filters.map(async (filter) => {
      const { data } = await readDeliveries({ api, partnerId: undefined }, one.id, filter, page);
      const events = data.map((delivery) => eventHit(one, delivery));
      return data.length < 2 || isUlid(typed) ? events : [reviewHit(one, filter, data), ...events];
    }),
  );
  return found.flat();
}

function eventHit({ id, label }: Subscription, delivery: ListedDelivery): Hit {
  const review = delivery.external_review_id;
  return {
    group: "Events",
    title: `${delivery.event} · ${sentence(delivery.state).toLowerCase()}`,
    hint: [review === null ? delivery.event_id : `review ${review}`, label].join(" · "),
    href: `/webhooks/${id}/deliveries/${delivery.event_id}`,
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
async function accountHits(api: ApiClient, typed: string): Promise<Hit[]> {
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

/** Finds a user by id, or users by a part of their name or email. */
async function operatorHits(api: ApiClient, typed: string): Promise<Hit[]> {
  const isId = isReviewId(typed);
  if (typed.length < ID_CHARS && !isId) return [];
  const users = isId
    ? await orNone(answerOf(api.admin.users({ id: typed }).get()))
    : (await answerOf(api.admin.users.get({ query: { q: typed, limit: RESULTS_PER_GROUP } }))).data;
  return users.map(({ name, email, company }) => ({
    group: "Users",
    title: name,
    hint: `${email} · ${company.name}`,
    href: `/users?q=${encodeURIComponent(email)}`,
  }));
}
