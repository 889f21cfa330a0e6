import { webhookSecretContext } from "./secret-context.ts";

/** A column whose values are sealed with the master key. */
export interface SealedColumn {
  readonly table: string;
  readonly column: string;
  /** A unique text column. */
  readonly key: string;
  /** Columns that the context is made of. */
  readonly bound: readonly string[];
  readonly context: (row: Readonly<Record<string, unknown>>) => string;
  /** Further states of a row in which the column is empty, for the index that leaves them out. */
  readonly where?: string;
}

const webhookSecret = {
  table: "webhook_subscriptions",
  key: "id",
  bound: ["partner_id", "id"],
  context: (row: Readonly<Record<string, unknown>>) =>
    webhookSecretContext(Number(row["partner_id"]), String(row["id"])),
};

/**
 * Every sealed column of the schema, with the context of its values as the code that seals them has it; a test holds
 * the list against the schema and opens a value of each.
 */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { ...webhookSecret, column: "sealed_secret" },
  { ...webhookSecret, column: "sealed_previous_secret" },
  {
    table: "review_sites",
    column: "sealed_secret",
    key: "slug",
    bound: ["slug"],
    context: ({ slug }) => `provider:${String(slug)}`,
  },
  {
    table: "signing_keys",
    column: "sealed_private_key",
    key: "kid",
    bound: ["kid"],
    context: ({ kid }) => `signing-key:${String(kid)}`,
  },
  {
    table: "tokens",
    column: "sealed_token",
    key: "jti",
    bound: ["jti", "user_id"],
    context: ({ jti, user_id }) => `api-token:${String(user_id)}:${String(jti)}`,
    where: "kind = 'dashboard_pat'",
  },
  {
    table: "sso_connections",
    column: "sealed_client_secret",
    key: "id",
    bound: ["company_id", "id"],
    context: ({ company_id, id }) => `sso:${String(company_id)}:${String(id)}`,
  },
  {
    table: "mails",
    column: "sealed_message",
    key: "id",
    bound: ["id"],
    context: ({ id }) => `mail:${String(id)}`,
    where: "state = 'queued'",
  },
];
