import { answerOf, type ApiClient } from "../api/client.ts";
import { hasWords } from "../ui/text-query.ts";
import { type Hit, isSameId, RESULTS_PER_GROUP } from "./hit.ts";

/** Minimum number of characters of a search text that is no id. */
const MIN_CHARS = 2;

/** Finds records of all companies by their ids, names and addresses. */
export async function operatorHits(api: ApiClient, typed: string): Promise<Hit[]> {
  if (typed.length < MIN_CHARS && !/^\d$/.test(typed)) return [];
  const [{ data }, named] = await Promise.all([
    answerOf(api.admin.search.post({ q: typed.slice(0, MAX_CHARS) })),
    namedHits(api, typed),
  ]);
  const hits = [...data.map((found) => hitOf(found, typed)), ...named];
  // Records with the typed id come first, whatever their kind.
  return hits.toSorted((a, b) => Number(b.isExact) - Number(a.isExact));
}

/** Finds plans and providers by name. There are few, so their first pages are searched here. */
async function namedHits(api: ApiClient, typed: string): Promise<Hit[]> {
  const query = { limit: 100 };
  const [plans, providers] = await Promise.all([
    answerOf(api.admin.plans.get({ query })),
    answerOf(api.admin.providers.get({ query })),
  ]);
  const hitsIn = (group: "Plans" | "Providers", rows: readonly { readonly name: string }[]) =>
    rows
      .filter(({ name }) => hasWords(name, typed))
      .map(({ name }) => ({ group, title: name, hint: "", href: `/${group.toLowerCase()}` }));
  return [...hitsIn("Plans", plans.data), ...hitsIn("Providers", providers.data)].slice(
    0,
    RESULTS_PER_GROUP,
  );
}

/** Maximum length in characters of a search text that the API accepts. */
const MAX_CHARS = 200;

type Found = NonNullable<
  Awaited<ReturnType<ApiClient["admin"]["search"]["post"]>>["data"]
>["data"][number];

const GROUPS = {
  partner: "Companies",
  account: "Companies",
  store: "Stores",
  user: "Users",
  subscription: "Subscriptions",
  event: "Events",
  service: "Services",
  sso_connection: "Single sign-on",
  oauth_client: "OAuth clients",
} as const satisfies Record<Found["kind"], Hit["group"]>;

function hitOf(found: Found, typed: string): Hit {
  const { kind, id, name, detail, company } = found;
  const noun = NUMBERED[kind];
  const own = noun === undefined ? undefined : `${noun} ${id}`;
  return {
    group: GROUPS[kind],
    title: name,
    hint: [own, detail, company].filter((part) => part && part !== name).join(" · "),
    href: hrefOf(found),
    isExact: isSameId(id, typed),
  };
}

/** Nouns of the kinds whose ids are numbers that people say. */
const NUMBERED: { readonly [Kind in Found["kind"]]?: string } = {
  partner: "Partner",
  account: "Account",
  store: "Store",
  service: "Service",
};

/** Returns the page of a record. An event that no subscription received leads to its partner. */
function hrefOf({ kind, id, ...found }: Found): string {
  const partner = `/companies/${found.partner_id}`;
  switch (kind) {
    case "partner":
    case "account":
      return `/companies/${id}`;
    case "store":
      return `/stores/${id}`;
    case "user":
      return `/users/${id}`;
    case "subscription":
      return `${partner}/webhooks/${id}`;
    case "event":
      return found.subscription_id === null
        ? partner
        : `${partner}/webhooks/${found.subscription_id}/deliveries/${id}`;
    case "service":
      return `/services/${id}`;
    case "sso_connection":
      return `/sso/${id}`;
    case "oauth_client":
      return "/keys";
  }
}
