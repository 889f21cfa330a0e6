/** Maps a scope (contract 5.1) to its description for users. */
export const SCOPE_WORDS = {
  "*": "Full access",
  "reviews:read": "Read reviews",
  "reviews:write": "Respond to, flag and assign reviews",
  "webhooks:read": "Read webhooks and deliveries",
  "webhooks:write": "Create, update and delete webhooks",
  "clients:write": "Manage OAuth clients",
  impersonate: "Act as account owners",
} as const;

export type Scope = keyof typeof SCOPE_WORDS;
// The type assertion is needed because `Object.keys` returns `string[]`.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const SCOPES = Object.keys(SCOPE_WORDS) as Scope[];

export function scopeWords(scopes: readonly string[]): string {
  return scopes.includes("*") ? "Full access" : scopes.join(", ");
}

export const isScope = (value: string): value is Scope => value in SCOPE_WORDS;
