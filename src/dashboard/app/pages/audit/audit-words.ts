import { ACTION_WORDS, TOKEN_KINDS } from "../../api/audit-words.ts";
import { counted, idOf, instantOf, sentence } from "../../ui/format.ts";
import { textQuery } from "../../ui/text-query.ts";

export const FILTERS = [
  "q",
  "category",
  "action",
  "actor",
  "company",
  "within",
  "since",
  "until",
  "reads",
] as const;

/** Maps a preset period in the address to its title and its length in ms. The period ends now. */
export const PERIODS: Readonly<Record<string, readonly [title: string, ms: number]>> = {
  "1h": ["Last hour", 3_600_000],
  "24h": ["Last 24 hours", 86_400_000],
  "7d": ["Last 7 days", 604_800_000],
  "30d": ["Last 30 days", 2_592_000_000],
};
/** Value of the address for entries about reads of operators, which are otherwise left out. */
export const WITH_READS = "shown";
type Get = (name: (typeof FILTERS)[number]) => string | undefined;

export type AuditQuery = ReturnType<typeof auditQuery>;

/**
 * Converts the filters in the address to query parameters of the audit log API. Values that the API would
 * reject are left out. A company or a user finds what they did and what was done to them; both find what the company's
 * people did to the user.
 */
export function auditQuery(get: Get) {
  const category = AUDIT_CATEGORIES.find((one) => one.category === get("category"))?.category;
  const action = get("action");
  const within = get("within");
  const since = instantOf(get("since"));
  const until = instantOf(get("until"));
  return {
    ...textQuery(get("q")),
    ...(category !== undefined && { category }),
    ...(action !== undefined && /^[A-Z_]{1,64}$/.test(action) && { action }),
    ...aboutQuery(idOf(get("actor")), idOf(get("company"))),
    ...(get("reads") !== WITH_READS && action !== "TENANT_READ" && { reads: "false" as const }),
    ...(within !== undefined && within in PERIODS && { within }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  };
}

function aboutQuery(
  user: number | undefined,
  company: number | undefined,
): { readonly about?: string; readonly company_id?: number } {
  if (user === undefined) return company === undefined ? {} : { about: `company:${company}` };
  return { about: `user:${user}`, ...(company !== undefined && { company_id: company }) };
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

type Details = Readonly<Record<string, unknown>>;

/** Converts the details of an audit log entry to pairs of name and text, in their original order. */
export function detailPairs(details: Details): [string, string][] {
  return Object.entries(details).flatMap(([name, value]): [string, string][] => {
    if (name === "changes") return changePairs(asDetails(value));
    if (name === "fields" && "changes" in details) return fieldPairs(details);
    if (name === "revoked") return [["Ended", endedText(value)]];
    if (name === "held") return [["Held events", value === "skip" ? "Skipped" : "Delivered"]];
    if (name === "test") return [["Enabled", "Once a test event is delivered"]];
    if (name === "token") return [["Token", tokenText(asDetails(value))]];
    return [[title(name), CODED.test(name) ? codeText(value) : detailText(value)]];
  });
}

/** Names of details that are codes of the API, such as `dashboard_pat`. */
const CODED = /^(kind|method|type|role|from|to|delivery_kind|leg|start|state)$/;

const codeText = (value: unknown) =>
  typeof value === "string" && /^[a-z_]+$/.test(value)
    ? sentence(TOKEN_KINDS.get(value) ?? value)
    : detailText(value);

const endedText = (count: unknown) =>
  counted(Number(count), "sign-in or token", "sign-ins and tokens");

const asDetails = (value: unknown): Details =>
  typeof value === "object" && value !== null ? { ...value } : {};

const title = (name: string) =>
  sentence(name)
    .replace(/ ids?$/, (end) => end.replace("id", "ID"))
    .replace(/\b(url|uris?|ip)\b/gi, (word) => word.toUpperCase());

/** Returns the old and the new value of each changed field. */
const changePairs = (changes: Details): [string, string][] =>
  Object.entries(changes).map(([field, change]) => {
    const { from, to } = asDetails(change);
    const text = CODED.test(field) ? codeText : detailText;
    const [old, current] = [text(from), text(to)];
    return [title(field), `${old} → ${current}`];
  });

/** Names the changed fields whose values are not recorded, because they are personal or secret. */
function fieldPairs({ fields, changes, user_id: user }: Details): [string, string][] {
  const known = asDetails(changes);
  const names = (Array.isArray(fields) ? fields : []).map(String);
  const others = names.filter((name) => !(name in known)).map(title);
  if (others.length === 0) return [];
  return typeof user === "number"
    ? [["Changed", `${others.join(", ")} (personal data is not recorded)`]]
    : [["Also sent", `${others.join(", ")} (the value is not recorded)`]];
}

function tokenText({ kind, jti, client_id: client }: Details): string {
  return `${codeText(kind)} ${detailText(jti)}${typeof client === "string" ? ` of ${client}` : ""}`;
}

/** Shows a detail of any type as text. */
function detailText(value: unknown): string {
  if (value === null || value === undefined || value === "") return "None";
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "Yes" : "No";
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    return items.length === 0 ? "None" : items.map((item) => detailText(item)).join(", ");
  }
  if (typeof value !== "object") return JSON.stringify(value);
  return Object.entries(value)
    .map(([name, part]) => `${title(name)}: ${detailText(part)}`)
    .join("; ");
}
