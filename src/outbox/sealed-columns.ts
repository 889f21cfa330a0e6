import { getTableName, sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

import { alertSettings, mails } from "../../db/schema/alerts.ts";
import { signingKeys, tokens } from "../../db/schema/tokens.ts";
import { reviewSites } from "../../db/schema/providers.ts";
import { ssoConnections } from "../../db/schema/sign-in.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { alertSecretContext } from "./alert.ts";

type Context = (row: Readonly<Record<string, unknown>>) => string;

/** A column whose values are sealed with the master key. */
export interface SealedColumn {
  readonly sealed: PgColumn;
  readonly table: string;
  readonly column: string;
  /** A unique text column. */
  readonly key: string;
  /** Columns that the context is made of. */
  readonly bound: readonly string[];
  readonly context: Context;
  /** Further states of a row in which the column is empty, for the index that leaves them out. */
  readonly where?: SQL;
}

function sealedColumn(
  sealed: PgColumn,
  key: PgColumn,
  { bound, context }: { readonly bound: readonly PgColumn[]; readonly context: Context },
  where?: SQL,
): SealedColumn {
  return {
    sealed,
    table: getTableName(sealed.table),
    column: sealed.name,
    key: key.name,
    bound: bound.map(({ name }) => name),
    context,
    ...(where !== undefined && { where }),
  };
}

/** The context that a webhook secret is bound to: in another subscription or tenant it does not open (contract 6.6). */
export function webhookSecretContext(partnerId: number, subscriptionId: string): string {
  return `webhook:${partnerId}:${subscriptionId}`;
}

const webhookSecret = {
  bound: [webhookSubscriptions.partnerId, webhookSubscriptions.id],
  context: (row: Readonly<Record<string, unknown>>) =>
    webhookSecretContext(Number(row["partner_id"]), String(row["id"])),
};

/**
 * Every sealed column of the schema, with the context of its values as the code that seals them has it; a test holds
 * the list against the schema and opens a value of each.
 */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  sealedColumn(webhookSubscriptions.sealedSecret, webhookSubscriptions.id, webhookSecret),
  sealedColumn(webhookSubscriptions.sealedPreviousSecret, webhookSubscriptions.id, webhookSecret),
  sealedColumn(reviewSites.sealedSecret, reviewSites.slug, {
    bound: [reviewSites.slug],
    context: ({ slug }) => `provider:${String(slug)}`,
  }),
  sealedColumn(signingKeys.sealedPrivateKey, signingKeys.kid, {
    bound: [signingKeys.kid],
    context: ({ kid }) => `signing-key:${String(kid)}`,
  }),
  sealedColumn(
    tokens.sealedToken,
    tokens.jti,
    {
      bound: [tokens.jti, tokens.userId],
      context: ({ jti, user_id }) => `api-token:${String(user_id)}:${String(jti)}`,
    },
    sql`${tokens.kind} = 'dashboard_pat'`,
  ),
  sealedColumn(ssoConnections.sealedClientSecret, ssoConnections.id, {
    bound: [ssoConnections.companyId, ssoConnections.id],
    context: ({ company_id, id }) => `sso:${String(company_id)}:${String(id)}`,
  }),
  sealedColumn(alertSettings.sealedSecret, alertSettings.id, {
    bound: [alertSettings.partnerId, alertSettings.id],
    context: ({ partner_id, id }) => alertSecretContext(Number(partner_id), String(id)),
  }),
  sealedColumn(
    mails.sealedMessage,
    mails.id,
    { bound: [mails.id], context: ({ id }) => `mail:${String(id)}` },
    sql`${mails.state} = 'queued'`,
  ),
];
