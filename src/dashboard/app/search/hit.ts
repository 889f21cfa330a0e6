import { clientsPathOf } from "../pages/keys/client-model.ts";
import type { Subscription } from "../pages/webhooks/data/reads.ts";
import { hasWords } from "../ui/text-query.ts";

/** Result of the search dialog, with the page that it links to. */
export interface Hit {
  readonly group:
    | "Pages"
    | "Settings and actions"
    | "Events"
    | "Reviews"
    | "Subscriptions"
    | "Companies"
    | "Accounts"
    | "Team"
    | "Stores"
    | "Users"
    | "Plans"
    | "Providers"
    | "Services"
    | "Single sign-on"
    | "OAuth clients"
    | "Event catalog"
    | "Documentation";
  readonly title: string;
  readonly hint: string;
  /** Path of the page below `/dashboard`. Guides have a path below `/docs` and open in a new tab. */
  readonly href: string;
  /** True if the search text is the id of the record. */
  readonly isExact?: boolean;
}

export const isGuide = ({ href }: Hit): boolean => href.startsWith("/docs/");

/** Maximum number of search results per group. */
export const RESULTS_PER_GROUP = 5;

/** Compares a record's id with a search text. People paste ULIDs in either case. */
export const isSameId = (id: string, typed: string) => id.toLowerCase() === typed.toLowerCase();

/** Returns whether users of a role have a setting on a page that they may open. */
type Rule = (role: string) => boolean;

const isPartnerOwner: Rule = (role) => role === "partner_owner";
const hasClients: Rule = (role) => clientsPathOf(role) !== undefined;

/** Further words by which the search finds a page. */
const PAGE_WORDS: Readonly<Record<string, string>> = {
  "/webhooks": "subscriptions endpoints deliveries",
  "/events": "payloads schemas examples",
  "/sites": "connections providers",
  "/dispatcher": "queue backlog health status shards",
  "/inbox": "actions",
  "/companies": "partners accounts customers tenants",
  "/stores": "places locations",
  "/users": "people persons operators",
  "/plans": "features",
  "/sso": "sso oidc identity provider",
  "/services": "programs tokens",
  "/providers": "review sites pullers",
  "/audit": "history activity events",
  "/audit-webhook": "siem",
  "/erasures": "gdpr privacy deletions",
  "/accounts": "customers",
  "/team": "people users colleagues members",
  "/access": "sessions tokens",
  "/embedding": "portal iframe",
  "/keys": "tokens oauth clients integrations credentials",
  "/security": "password two-step 2fa mfa passkey sessions",
};

/** Returns the pages in the navigation menu that match the search text. Matches in titles come first. */
export function pagesLike(
  areas: readonly { readonly path: string; readonly title: string }[],
  typed: string,
): Hit[] {
  return areas
    .filter(({ path, title }) => hasWords(`${title} ${PAGE_WORDS[path] ?? ""}`, typed))
    .toSorted((a, b) => Number(hasWords(b.title, typed)) - Number(hasWords(a.title, typed)))
    .map(({ path, title }) => ({ group: "Pages", title, hint: "", href: path }));
}

/**
 * Settings and actions of pages: the path, the title, further words for the search, and a rule if not all roles have
 * the setting.
 */
const TOPICS: readonly (readonly [path: string, title: string, words: string, rule?: Rule])[] = [
  ["/webhooks/new", "New subscription", "create add webhook endpoint"],
  ["/team?new=1", "Invite a colleague", "new create add user person member team", isPartnerOwner],
  ["/accounts", "Act as the owner of an account", "assist support impersonate sign in as"],
  ["/webhooks/alerts", "Alerts", "notify email recipients digest backlog signing secret"],
  ["/embedding", "Portal links", "create embed frame theme preview"],
  ["/embedding", "Allowed origins", "embed frame portal domain"],
  ["/keys", "Personal access token", "manage generate regenerate delete api key"],
  ["/keys?new=token", "New 24-hour token", "create add api key script scopes"],
  ["/keys?new=integration", "New integration", "create add api key token program", isPartnerOwner],
  ["/keys?new=client", "New OAuth client", "create add app sign in redirect", hasClients],
  ["/keys", "OAuth clients", "app edit rotate client secret delete", hasClients],
  ["/security", "Password", "change set"],
  ["/security", "Two-step verification", "second factor 2fa mfa passkey app recovery codes"],
  ["/security", "Where you are signed in", "sessions end sign out devices"],
  ["/access", "Two-step verification for your team", "require second factor 2fa mfa"],
  ["/access", "Sessions and tokens of your team", "end revoke sessions"],
  ["/inbox", "Rejected actions", "inbox failed notices retry delete service"],
  ["/companies?new=1", "New partner", "create add company customer"],
  ["/companies?tab=accounts&new=1", "New account", "create add company customer"],
  ["/stores?new=1", "New store", "create add place location"],
  ["/users?new=1", "New user", "invite create add person operator colleague"],
  ["/plans?new=1", "New plan", "create add features"],
  ["/sso?new=1", "New single sign-on connection", "create add sso oidc identity provider"],
  ["/services?new=1", "New service", "create add program token scopes"],
  ["/providers?new=1", "New review site provider", "create add puller"],
  ["/sso", "Single sign-on of a company", "sso oidc identity provider domain dns verify"],
  ["/providers", "Secret of a provider", "rotate review site puller sign"],
  ["/audit-webhook", "Where the audit log is sent", "siem url rotate secret remove"],
  ["/erasures?new=1", "Erase a person", "gdpr delete data privacy reviewer user"],
  ["/erasures?tab=companies&new=1", "Delete a company", "leaving partner account cancel"],
  ["/audit?q=viewed", "Who viewed a secret or a token", "looked shown audit log"],
  ["/audit", "Export the audit log", "csv json download"],
];

/**
 * Returns the settings and actions of these areas that a role has and that match the search text. Matches in titles
 * come first.
 */
export function topicsLike(
  areas: readonly { readonly path: string }[],
  role: string,
  typed: string,
): Hit[] {
  return TOPICS.filter(
    ([href, title, words, rule]) =>
      areas.some(({ path }) => href.split("?")[0] === path || href.startsWith(`${path}/`)) &&
      rule?.(role) !== false &&
      hasWords(`${title} ${words}`, typed),
  )
    .toSorted(([, a], [, b]) => Number(hasWords(b, typed)) - Number(hasWords(a, typed)))
    .map(([href, title]) => ({ group: "Settings and actions", title, hint: "", href }));
}

const TABS: Readonly<Record<string, string>> = {
  Overview: "health incident success rate latency chart check endpoint",
  Deliveries: "events attempts failures resend recover send again redeliver export",
  Settings:
    "url ordering payload signing secret rotate disable delete test batch standard webhooks own custom headers sequence",
};

/** Returns the tabs of a subscription whose label, URL or actions match the search text. Its id finds the first tab. */
export function tabsLike(
  { id, label, webhook_url: url }: Pick<Subscription, "id" | "label" | "webhook_url">,
  typed: string,
): Hit[] {
  const isExact = isSameId(id, typed);
  return Object.entries(TABS)
    .filter(([tab, words]) =>
      isExact ? tab === "Overview" : hasWords(`${label} ${url} ${tab} ${words}`, typed),
    )
    .map(([tab]) => ({
      group: "Subscriptions",
      title: `${label}: ${tab.toLowerCase()}`,
      hint: url,
      href: tab === "Overview" ? `/webhooks/${id}` : `/webhooks/${id}?tab=${tab.toLowerCase()}`,
      isExact,
    }));
}

/** Section of a guide, as the search index `/docs/search.json` lists it. */
export interface Section {
  readonly path: string;
  readonly guide: string;
  readonly title: string;
  readonly text: string;
}

/**
 * Finds sections of guides that contain every word of the search text. Matches in section titles come before
 * matches in the section text.
 */
export function guidesLike(sections: readonly Section[], typed: string): Hit[] {
  const titled = sections.filter(({ title, guide }) => hasWords(`${guide} ${title}`, typed));
  const others = sections.filter((one) => !titled.includes(one) && hasWords(one.text, typed));
  return [...titled, ...others].slice(0, RESULTS_PER_GROUP).map(({ path, guide, title }) => ({
    group: "Documentation",
    title,
    hint: guide === title ? "" : guide,
    href: path,
  }));
}
