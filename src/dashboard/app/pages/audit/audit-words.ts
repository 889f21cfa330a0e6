import { ACTION_WORDS } from "../../api/audit-words.ts";
import { idOf, instantOf } from "../../ui/format.ts";
import { textQuery } from "../../ui/text-query.ts";

export const FILTERS = ["q", "category", "action", "actor", "company", "since", "until"] as const;
type Get = (name: (typeof FILTERS)[number]) => string | undefined;

export type AuditQuery = ReturnType<typeof auditQuery>;

/**
 * Converts the filters in the address to query parameters of the audit log API. Values that the API would
 * reject are left out.
 */
export function auditQuery(get: Get) {
  const category = AUDIT_CATEGORIES.find((one) => one.category === get("category"))?.category;
  const action = get("action");
  const actorId = idOf(get("actor"));
  const companyId = idOf(get("company"));
  const since = instantOf(get("since"));
  const until = instantOf(get("until"));
  return {
    ...textQuery(get("q")),
    ...(category !== undefined && { category }),
    ...(action !== undefined && /^[A-Z_]{1,64}$/.test(action) && { action }),
    ...(actorId !== undefined && { actor_id: actorId }),
    ...(companyId !== undefined && { company_id: companyId }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  };
}

/**
 * Categories of audit actions: the value and title of a category, and a pattern for the names of its actions. An
 * action belongs to the first category whose pattern matches. The last pattern matches all names.
 */
const CATEGORY_PATTERNS = [
  [
    "sign_in",
    "Sign-in",
    /^(AUTH|SECOND|RECOVERY|OTP|PASSWORD|SSO|SESSION|IMPERSONATION|CODE|CONSENT)/,
  ],
  ["tokens", "Tokens and clients", /^(TOKEN|REFRESH|CLIENT|KEY|SERVICE|INTEGRATION)/],
  ["webhooks", "Webhooks", /^(WEBHOOK|EMBEDDING|PORTAL|ALERTS)/],
  ["users", "Users and companies", /^(USER|COMPANY|ERASURE|TENANT)/],
  ["platform", "Platform", /^/],
] as const;

const byCategory = Map.groupBy(
  Object.keys(ACTION_WORDS),
  (action) => CATEGORY_PATTERNS.find(([, , pattern]) => pattern.test(action))?.[0],
);

/** All audit actions that this version of the dashboard knows, by category. */
export const AUDIT_CATEGORIES = CATEGORY_PATTERNS.map(([category, group]) => ({
  category,
  group,
  actions: byCategory.get(category) ?? [],
}));

/** Audit actions that the list highlights, because somebody who investigates an incident looks for them first. */
const SEVERE_ACTIONS = new Set([
  "AUTH_LOCKED",
  "RECOVERY_CODE_USED",
  "SECOND_FACTORS_RESET",
  "AUTHZ_DENIED",
  "REFRESH_REPLAYED",
  "CODE_REPLAYED",
  "IMPERSONATION_STARTED",
  "SSO_REFUSED",
]);
export const isSevere = (action: string): boolean => SEVERE_ACTIONS.has(action);

/**
 * Returns the path of the page of an entry's object; undefined if the user has no such page. The details do not name
 * the partner of a subscription, so operators have no link to it.
 */
export function objectPathOf(
  { subscription_id: subscription, user_id: user, ...details }: Readonly<Record<string, unknown>>,
  isOperator: boolean,
): string | undefined {
  if (!isOperator)
    return typeof subscription === "string" ? `/webhooks/${subscription}` : undefined;
  const company = details["company_id"] ?? details["partner_id"];
  if (typeof user === "number") return `/users/${user}`;
  return typeof company === "number" ? `/companies/${company}` : undefined;
}

/**
 * Converts the details of an audit log entry to pairs of name and text, in their original order. Nested values
 * become JSON.
 */
export function detailPairs(details: Readonly<Record<string, unknown>>): [string, string][] {
  return Object.entries(details).map(([name, value]) => [
    name,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
}
