import { sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

import { alertSettings, mails } from "../../db/schema/alerts.ts";
import { signingKeys, tokens } from "../../db/schema/tokens.ts";
import { reviewSites } from "../../db/schema/providers.ts";
import { ssoConnections } from "../../db/schema/sign-in.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";

/** A column whose values are sealed with the master key. */
export interface SealedColumn {
  readonly sealed: PgColumn;
  /** A unique text column. */
  readonly key: PgColumn;
  /** The context of a value is this word with what its row has in these columns. */
  readonly word: string;
  readonly bound: readonly PgColumn[];
  /** Further states of a row in which the column is empty, for the index that leaves them out. */
  readonly where?: SQL;
}

/** The context that a value of this row is bound to. */
export function contextOf(
  { word, bound }: SealedColumn,
  row: Readonly<Record<string, unknown>>,
): string {
  return [word, ...bound.map(({ name }) => String(row[name]))].join(":");
}

/** The context that a webhook secret is bound to: in another subscription or tenant it does not open (contract 6.6). */
export function webhookSecretContext(partnerId: number, subscriptionId: string): string {
  return `webhook:${partnerId}:${subscriptionId}`;
}

const webhookSecret = {
  key: webhookSubscriptions.id,
  word: "webhook",
  bound: [webhookSubscriptions.partnerId, webhookSubscriptions.id],
};

/**
 * Every sealed column of the schema, with the context of its values as the code that seals them has it; a test holds
 * the list against the schema and opens a value of each.
 */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { sealed: webhookSubscriptions.sealedSecret, ...webhookSecret },
  { sealed: webhookSubscriptions.sealedPreviousSecret, ...webhookSecret },
  {
    sealed: reviewSites.sealedSecret,
    key: reviewSites.slug,
    word: "provider",
    bound: [reviewSites.slug],
  },
  {
    sealed: signingKeys.sealedPrivateKey,
    key: signingKeys.kid,
    word: "signing-key",
    bound: [signingKeys.kid],
  },
  {
    sealed: tokens.sealedToken,
    key: tokens.jti,
    word: "api-token",
    bound: [tokens.userId, tokens.jti],
    where: sql`${tokens.kind} = 'dashboard_pat'`,
  },
  {
    sealed: ssoConnections.sealedClientSecret,
    key: ssoConnections.id,
    word: "sso",
    bound: [ssoConnections.companyId, ssoConnections.id],
  },
  {
    sealed: alertSettings.sealedSecret,
    key: alertSettings.id,
    word: "alerts",
    bound: [alertSettings.partnerId, alertSettings.id],
  },
  {
    sealed: mails.sealedMessage,
    key: mails.id,
    word: "mail",
    bound: [mails.id],
    where: sql`${mails.state} = 'queued'`,
  },
];
