export type ClientsPath = "/sso/clients" | "/partner/oauth-clients";

/**
 * Returns the API path at which users of a role manage OAuth clients (contract 3.3); undefined if the role
 * manages none.
 */
export function clientsPathOf(role: string): ClientsPath | undefined {
  if (role === "super_admin") return "/sso/clients";
  return role === "partner_owner" || role === "partner_admin"
    ? "/partner/oauth-clients"
    : undefined;
}

/** Returns whether the API path manages the OAuth clients of all companies, and not only of one partner. */
export const isPlatformPath = (path: ClientsPath): boolean => path === "/sso/clients";

const GRANT_TYPES = ["authorization_code", "refresh_token", "password"] as const;
type GrantType = (typeof GRANT_TYPES)[number];

export const isGrantType = (value: string): value is GrantType =>
  GRANT_TYPES.some((one) => one === value);

/** Values of the form for an OAuth client before they are sent. The fields have the same names as in the API. */
export interface ClientDraft {
  readonly name: string;
  readonly confidential: boolean;
  /** Redirect URIs as text, one URI per line. */
  readonly redirect_uris: string;
  readonly scopes: readonly Scope[];
  readonly grant_types: readonly GrantType[];
  readonly first_party: boolean;
  readonly require_pkce: boolean;
}

export const NEW_CLIENT: ClientDraft = {
  name: "",
  confidential: true,
  redirect_uris: "",
  scopes: ["reviews:read"],
  grant_types: ["authorization_code", "refresh_token"],
  first_party: false,
  require_pkce: true,
};

/** Fields of an OAuth client that the form reads from an API response. */
type ShownClient = Omit<ClientDraft, "redirect_uris" | "scopes" | "grant_types"> &
  Readonly<Record<"redirect_uris" | "scopes" | "grant_types", readonly string[]>>;

export function clientDraft(client: ShownClient): ClientDraft {
  return {
    ...client,
    redirect_uris: client.redirect_uris.join("\n"),
    scopes: client.scopes.filter(isScope),
    grant_types: client.grant_types.filter(isGrantType),
    require_pkce: client.require_pkce || !client.confidential,
  };
}

function redirectUrisOf({ redirect_uris: text }: ClientDraft): string[] {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.filter((line) => line !== "");
}

/**
 * Builds the request body that updates an OAuth client. The body of a creation also needs `confidential`. Only a
 * super-admin may set `first_party`.
 */
export function clientBody(draft: ClientDraft, isPlatform: boolean) {
  return {
    name: draft.name,
    redirect_uris: redirectUrisOf(draft),
    scopes: [...draft.scopes],
    grant_types: [...draft.grant_types],
    require_pkce: draft.require_pkce || !draft.confidential,
    ...(isPlatform && { first_party: draft.first_party }),
  };
}

/**
 * Returns the validation errors of the redirect URIs as text that quotes each invalid URI. The API names the
 * field by index (`redirect_uris.1`), which means nothing to users.
 */
export function redirectErrors(
  errors: Readonly<Record<string, readonly string[]>>,
  draft: ClientDraft,
): string | undefined {
  const uris = redirectUrisOf(draft);
  const found = Object.entries(errors).flatMap(([field, texts]) => {
    const index = /^redirect_uris(?:\.(\d+))?$/.exec(field);
    if (index === null) return [];
    const uri = index[1] === undefined ? "The list" : (uris[Number(index[1])] ?? "One of them");
    return [`${uri} ${texts.join(", ")}`];
  });
  return found.length === 0 ? undefined : `${found.join("; ")}.`;
}

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
