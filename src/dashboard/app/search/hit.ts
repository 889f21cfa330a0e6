import { hasWords } from "../ui/text-query.ts";

/** Result of the search dialog, with the page that it links to. */
export interface Hit {
  readonly group:
    | "Pages"
    | "Settings and actions"
    | "Events"
    | "Reviews"
    | "Subscriptions"
    | "Users"
    | "Event catalog"
    | "Documentation";
  readonly title: string;
  readonly hint: string;
  /** Path of the page below `/dashboard`. Guides have a path below `/docs` and open in a new tab. */
  readonly href: string;
}

export const isGuide = ({ href }: Hit): boolean => href.startsWith("/docs/");

/** Maximum number of search results per group. */
export const RESULTS_PER_GROUP = 5;

/** A setting or an action of a page, with further words for it. */
interface Topic {
  readonly title: string;
  readonly words: string;
  /** The area that it belongs to, or the tab of a subscription. */
  readonly of: string;
  /** Path of its page, if it is not that of the area. */
  readonly path?: string;
}

const TOPICS: readonly Topic[] = [
  {
    of: "/webhooks",
    title: "New subscription",
    words: "create add endpoint",
    path: "/webhooks/new",
  },
  {
    of: "/webhooks",
    title: "Alerts",
    words: "notify email mail recipients digest backlog signing secret",
    path: "/webhooks/alerts",
  },
  { of: "/embedding", title: "Portal links", words: "create embed frame theme preview" },
  { of: "/embedding", title: "Allowed origins", words: "embed frame portal domain" },
  { of: "/keys", title: "Personal token", words: "create regenerate delete api key" },
  { of: "/keys", title: "24-hour token", words: "create delete api key script scopes" },
  { of: "/keys", title: "OAuth client", words: "create app rotate client secret redirect" },
  { of: "/security", title: "Password", words: "change set new" },
  {
    of: "/security",
    title: "Two-step verification",
    words: "second factor 2fa mfa passkey authenticator app recovery codes",
  },
  { of: "/security", title: "Where you are signed in", words: "sessions end sign out devices" },
  { of: "/access", title: "Two-step verification of your people", words: "require second factor" },
  { of: "/access", title: "Sign-ins and tokens of your people", words: "end revoke sessions" },
  { of: "/audit", title: "Export the audit log", words: "csv json download" },
];

/** Returns the settings and actions of these areas that match the search text. */
export function topicsLike(areas: readonly string[], typed: string): Hit[] {
  return TOPICS.filter(
    ({ of, title, words }) => areas.includes(of) && hasWords(`${title} ${words}`, typed),
  ).map(({ of, title, path = of }) => ({
    group: "Settings and actions",
    title,
    hint: "",
    href: path,
  }));
}

const TABS: Readonly<Record<string, string>> = {
  Overview: "health incident success rate latency chart",
  Deliveries: "events attempts failures resend recover send again redeliver export",
  Settings:
    "url ordering payload signing secret rotate disable delete test batch standard webhooks",
};

/** Returns the tabs of a subscription that match the search text by its label, its URL or what can be done there. */
export function tabsLike(
  { id, label, webhook_url: url }: { id: string; label: string; webhook_url: string },
  typed: string,
): Hit[] {
  return Object.entries(TABS)
    .filter(([tab, words]) => hasWords(`${label} ${url} ${tab} ${words}`, typed))
    .map(([tab]) => ({
      group: "Subscriptions",
      title: `${label}: ${tab.toLowerCase()}`,
      hint: url,
      href: tab === "Overview" ? `/webhooks/${id}` : `/webhooks/${id}?tab=${tab.toLowerCase()}`,
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
