import { withApp } from "./factors.ts";
import { decodeJwt } from "jose";

import { addIntegration } from "./callers.ts";
import { addProvider, connectStore, created, report, reviewIdOf } from "./factory.ts";
import { addClient } from "./oauth.ts";
import type { SignInWorld } from "./sign-in.ts";
import { addSsoConnection, addUser } from "./tenants.ts";
import { settle } from "./webhooks.ts";

/**
 * The ids of a tenant's records, by the place where a request names them: the prefix of a path, or the name of a
 * field.
 */
export type Belongings = ReadonlyMap<string, string | number>;

/** Gives a partner one record of each kind that an id can address, mostly through the API as its own users would. */
export async function settleIn(world: SignInWorld, nth: 0 | 1): Promise<Belongings> {
  const { database, api, tenants, grant } = world;
  const { db } = database;
  const { id: partnerId, owner, admin, accounts } = tenants.partners[nth];
  const [account] = accounts;
  const word = `p${nth + 1}`;
  const provider = await addProvider(db, api.deps.box, `site-of-${word}`);
  const siteId = await connectStore(db, account, { provider });
  const token = await api.login(owner.email);
  const make = async (path: string, body: object) =>
    (await api.call("POST", path, { token, body })).body;
  const subscription = await make("/partner/webhooks", {
    label: `Hook of ${word}`,
    webhook_url: "http://127.0.0.1:9/",
    delivery_kind: "immediate",
  });
  const check = await make(`/partner/webhooks/${String(subscription["id"])}/check`, {});
  const client = await addClient(db, { companyId: partnerId, name: `Client of ${word}` });
  await report(api, provider, [
    created(siteId, `review-${word}`, { reviewer: `Guest of ${word}` }),
  ]);
  const [event] = await db.sql<{ id: string }[]>`
    select event_id as id from queued_entries where subscription_id = ${String(subscription["id"])}`;
  await settle(world, String(subscription["id"]), "failed");
  const integration = await addIntegration(api, token, { name: `Integration of ${word}` });
  const pat = await grant({ userId: owner.id, kind: "api_pat", name: `Token of ${word}` });
  const sessions = await api.call("GET", "/account/sessions", { token });
  const [session] = sessions.body["data"] as { id: string }[];
  const domains = [`sso-${word}.test`];
  const email = `factor-${word}@victims.test`;
  const holder = await addUser(db, { companyId: account.id, role: "account_user", email });
  const { factorId } = await withApp(world, holder);
  const connectionId = await addSsoConnection(db, { companyId: account.id, domains });
  const [identity] = await db.sql`
    insert into sso_identities (issuer, subject, user_id, connection_id, linked_at)
    values ('https://idp.example', ${word}, ${admin.id}, ${connectionId}, now()) returning id`;
  return new Map<string, string | number>([
    ["/account/personal-access-tokens/{id}", String(decodeJwt(pat).jti)],
    ["/partner/tokens/{id}", String(decodeJwt(pat).jti)],
    ["/account/sessions/{id}", session?.id ?? ""],
    ["/account/second-factors/{id}", factorId],
    ["/partner/sessions/{id}", session?.id ?? ""],
    ["/account/team-sessions/{id}", session?.id ?? ""],
    ["/account/team-tokens/{id}", String(decodeJwt(pat).jti)],
    ["/account/reviews/{id}", await reviewIdOf(db, `review-${word}`)],
    ["/partner/reviews/{id}", await reviewIdOf(db, `review-${word}`)],
    ["/partner/webhooks/{id}", String(subscription["id"])],
    ["{checkId}", String(check["check_id"])],
    ["{eventId}", event?.id ?? ""],
    ["{subscriptionId}", String(subscription["id"])],
    ["/partner/oauth-clients/{id}", client.clientId],
    ["/partner/integrations/{id}", integration.id],
    ["/partner/users/{id}", admin.id],
    ["/sso/clients/{id}", client.clientId],
    ["/admin/sso-connections/{id}", connectionId],
    ["/admin/partners/{id}", partnerId],
    ["/admin/accounts/{id}", account.id],
    ["/admin/companies/{id}", account.id],
    ["/admin/users/{id}", account.user.id],
    ["/admin/providers/{id}", provider.id],
    ["/admin/stores/{id}", account.storeIds[0] ?? 0],
    ["/admin/store-review-sites/{id}", siteId],
    ["/admin/plans/{id}", await planOf(db, account.id)],
    ["{externalId}", `external-${word}`],
    // Services, the inbox and erasures belong to the platform, so that no tenant has one.
    ["/admin/services/{id}", 1],
    ["/admin/inbox/{id}", 1],
    ["/admin/erasures/{id}", 1],
    ["{tokenId}", String(decodeJwt(pat).jti)],
    ["{sessionId}", session?.id ?? ""],
    ["{identityId}", Number(identity?.["id"])],
    ["partner_id", partnerId],
    ["account_id", account.id],
    ["company_id", account.id],
    ["store_id", account.storeIds[0] ?? 0],
    ["store_ids", account.storeIds[0] ?? 0],
    ["user_id", account.user.id],
    ["assigned_user_id", account.user.id],
    ["actor_id", account.user.id],
    ["provider_id", provider.id],
  ]);
}

async function planOf(db: SignInWorld["database"]["db"], accountId: number): Promise<number> {
  const [row] = await db.sql<{ id: number }[]>`
    select plan_id as id from companies where id = ${accountId}`;
  return row?.id ?? 0;
}
