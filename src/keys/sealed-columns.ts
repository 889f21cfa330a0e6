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
  /** The context of a value is this word with the values that its row has in `owner`, if it has one, and `key`. */
  readonly word: string;
  readonly owner?: PgColumn;
  /** A unique text column. */
  readonly key: PgColumn;
  /** Further states of a row in which the column is empty, for the index that leaves them out. */
  readonly where?: SQL;
}

/** The columns whose values are in the context. */
export function boundBy({ owner, key }: SealedColumn): PgColumn[] {
  return owner === undefined ? [key] : [owner, key];
}

/** The context that a value of this row is bound to. */
export function contextOf(column: SealedColumn, row: Readonly<Record<string, unknown>>): string {
  return [column.word, ...boundBy(column).map(({ name }) => String(row[name]))].join(":");
}

/** The context that a webhook secret is bound to: in another subscription or tenant it does not open (contract 6.6). */
export function webhookSecretContext(partnerId: number, subscriptionId: string): string {
  return `webhook:${partnerId}:${subscriptionId}`;
}

const webhookSecret = {
  word: "webhook",
  owner: webhookSubscriptions.partnerId,
  key: webhookSubscriptions.id,
};

/**
 * Every sealed column of the schema, with the context of its values as the code that seals them has it; a test holds
 * the list against the schema and opens a value of each.
 */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { sealed: webhookSubscriptions.sealedSecret, ...webhookSecret },
  { sealed: webhookSubscriptions.sealedPreviousSecret, ...webhookSecret },
  { sealed: reviewSites.sealedSecret, word: "provider", key: reviewSites.slug },
  { sealed: signingKeys.sealedPrivateKey, word: "signing-key", key: signingKeys.kid },
  {
    sealed: tokens.sealedToken,
    word: "api-token",
    owner: tokens.userId,
    key: tokens.jti,
    where: sql`${tokens.kind} = 'dashboard_pat'`,
  },
  {
    sealed: ssoConnections.sealedClientSecret,
    word: "sso",
    owner: ssoConnections.companyId,
    key: ssoConnections.id,
  },
  {
    sealed: alertSettings.sealedSecret,
    word: "alerts",
    owner: alertSettings.partnerId,
    key: alertSettings.id,
  },
  {
    sealed: mails.sealedMessage,
    word: "mail",
    key: mails.id,
    where: sql`${mails.state} = 'queued'`,
  },
];
