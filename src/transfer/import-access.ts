import { randomInt } from "node:crypto";
import { ulid } from "ulid";

import { parseInstant } from "../lib/clock.ts";
import { checkNewWebhookUrl } from "../lib/egress.ts";
import { hashError } from "../lib/foreign-hashes.ts";
import { fingerprint } from "../lib/secrets.ts";
import { hashSecret } from "../lib/secrets.ts";
import { webhookSecretAssociatedData } from "../master-key.ts";
import { DEFAULT_GRANTS } from "../oauth/model.ts";
import { clientErrors } from "../oauth/redirect-uri.ts";
import { isMailAddress, normalEmail, spellingOf } from "../lib/email.ts";
import { sealHeaders } from "../outbox/own-headers.ts";
import { SHARDS } from "../outbox/schedule.ts";
import { ROLES_OF } from "../tenants/model.ts";
import { firstBatchAt, intervalError, settingsOf } from "../webhooks/decide.ts";
import { headersError } from "../webhooks/header-rules.ts";
import { DISABLED_BY_HAND } from "../webhooks/model.ts";
import { byKey, Directory, fault, type Fault, type Outcome, unknown } from "./directory.ts";
import type { LineOf } from "./format.ts";
import * as queries from "./queries/import.ts";
import { given, named, ownKeys, present, type ImportDeps } from "./import-master-data.ts";

/**
 * Returns a function that finds the company of a line's user: the partner or account that the line names, or the
 * platform if the line names neither.
 */
async function employersOf({ tx }: ImportDeps, lines: readonly LineOf<"user">[]) {
  const find = async (type: "partner" | "account", keys: readonly (number | string)[]) =>
    byKey(await queries.companiesBy(tx, type, keys));
  const partners = await find("partner", present(lines.map((one) => one.partner_id)));
  const accounts = await find("account", present(lines.map((one) => one.account_id)));
  const platform = await queries.platformId(tx);
  return ({ partner_id: partnerId, account_id: accountId }: LineOf<"user">) => {
    if (partnerId !== undefined && accountId !== undefined)
      return fault("account_id", "must be absent if partner_id is given");
    if (accountId !== undefined) {
      const id = accounts.get(accountId)?.id;
      return id === undefined ? unknown("account_id", "account") : employerOfType("account", id);
    }
    if (partnerId !== undefined) {
      const id = partners.get(partnerId)?.id;
      return id === undefined ? unknown("partner_id", "partner") : employerOfType("partner", id);
    }
    return platform === undefined
      ? fault(
          "partner_id",
          "is required unless account_id is sent: the platform itself is not set up",
        )
      : employerOfType("platform", platform);
  };
}

const employerOfType = (type: keyof typeof ROLES_OF, id: number) => ({ type, id });

export async function importUsers(deps: ImportDeps, lines: readonly LineOf<"user">[]) {
  const { tx, now } = deps;
  const emails = lines.map((line) => spellingOf(line.email));
  const employerOf = await employersOf(deps, lines);
  const stores = byKey(
    await queries.storesBy(
      tx,
      lines.flatMap((one) => one.store_ids ?? []),
    ),
  );
  const known = await queries.usersBy(tx, ownKeys(lines), emails);
  const directory = new Directory(
    "user",
    known.map((one) => ({ ...one, ...identityOf(one) })),
  );
  const values: Parameters<typeof queries.insertUsers>[1][number][] = [];
  const outcomes = lines.map((line, index) => {
    const email = emails[index] ?? "";
    const company = employerOf(line);
    if ("field" in company) return company;
    return directory.settle({ ...given(line), ...personOf(email, company.id) }, () => {
      const own = (line.store_ids ?? []).map((one) => stores.get(one));
      const refusal = userFault({ ...line, email }, company, own);
      if (refusal !== undefined) return refusal;
      values.push({
        ...given(line),
        companyId: company.id,
        email,
        name: line.name,
        role: line.role,
        passwordHash: line.password_hash ?? null,
        isActive: line.is_active ?? true,
        createdAt: parseInstant(line.created_at) ?? now,
        updatedAt: now,
        storeIds: own.flatMap((one) => one?.id ?? []),
      });
      return undefined;
    });
  });
  await queries.insertUsers(tx, values);
  return outcomes;
}

const personOf = (email: string, companyId: number) => ({
  name: email,
  unique: { field: "email", value: normalEmail(email) },
  origin: String(companyId),
});

/** Returns the identity of a user. No line refers to an integration, because its origin is that of no line. */
const identityOf = ({ email, name, role, companyId }: KnownUser) =>
  role === "partner_integration"
    ? { noun: "integration", name, origin: "" }
    : personOf(email, companyId);

type KnownUser = Awaited<ReturnType<typeof queries.usersBy>>[number];

/** Returns the fault of a line that violates a rule for users which its schema cannot express. */
function userFault(
  { email, role, password_hash: hash }: LineOf<"user">,
  company: ReturnType<typeof employerOfType>,
  stores: readonly ({ readonly accountId: number } | undefined)[],
): Fault | undefined {
  if (!isMailAddress(email))
    return fault("email", "must be a single email address without a display name");
  const roles: readonly string[] = ROLES_OF[company.type];
  if (!roles.includes(role))
    return fault("role", `must be one of ${roles.join(", ")} in a company of type ${company.type}`);
  if (role === "location_user" && stores.length === 0)
    return fault("store_ids", "is required for a location user");
  if (role !== "location_user" && stores.length > 0)
    return fault("store_ids", "is only allowed for location users");
  if (stores.some((one) => one?.accountId !== company.id))
    return fault("store_ids", "must be stores of the account");
  const refusal = hash === undefined ? undefined : hashError(hash);
  return refusal === undefined ? undefined : fault("password_hash", refusal);
}

export async function importClients(
  { tx, now }: ImportDeps,
  lines: readonly LineOf<"oauth_client">[],
) {
  const partners = byKey(
    await queries.companiesBy(tx, "partner", present(lines.map((one) => one.partner_id))),
  );
  const creators = present(lines.map((one) => one.created_by)).map(String);
  const known = await queries.clientsBy(tx, [...lines.map((one) => one.client_id), ...creators]);
  const directory = new Directory(
    "OAuth client",
    known.map(({ clientId, companyId }) => ({ id: clientId, origin: String(companyId) })),
  );
  const clientIds = new Set(known.map(({ clientId }) => clientId));
  const values: Parameters<typeof queries.insertClients>[1][number][] = [];
  const outcomes = lines.map((line) => {
    const partner = line.partner_id === undefined ? null : partners.get(line.partner_id);
    if (partner === undefined) return unknown("partner_id", "partner");
    const companyId = partner?.id ?? null;
    const { client_id: clientId, client_secret: secret, secret_hash: hash } = line;
    return directory.settle({ id: clientId, origin: String(companyId) }, () => {
      if (secret !== undefined && hash !== undefined)
        return fault("secret_hash", "must be absent if client_secret is given");
      if (line.created_by !== undefined && !clientIds.has(line.created_by))
        return fault("created_by", "names no client of an earlier line");
      const secretHash =
        secret === undefined ? (hash?.slice("sha256:".length) ?? null) : hashSecret(secret);
      const confidential = secretHash !== null;
      const {
        redirect_uris = [],
        grant_types = [...DEFAULT_GRANTS],
        first_party = false,
        require_pkce,
      } = line;
      const fields = {
        redirect_uris,
        grant_types,
        first_party,
        confidential,
        name: line.name,
        require_pkce,
      };
      const errors = Object.entries(clientErrors(fields, { isPlatform: true }));
      for (const [field, text] of errors) if (text !== undefined) return fault(field, text);
      clientIds.add(clientId);
      values.push({
        clientId,
        companyId,
        name: line.name,
        secretHash,
        confidential,
        firstParty: first_party,
        redirectUris: redirect_uris,
        scopes: line.scopes,
        grantTypes: grant_types,
        // If the line does not say it, PKCE is not required of a confidential client, because the app that uses the
        // client may not support PKCE.
        requirePkce: require_pkce ?? !confidential,
        createdBy: line.created_by ?? null,
        createdAt: parseInstant(line.created_at) ?? now,
        updatedAt: now,
      });
      return undefined;
    });
  });
  await queries.insertClients(tx, values);
  return outcomes;
}

const slotOf = (partnerId: number, kind: string) => named("delivery_kind", `${partnerId} ${kind}`);

export async function importSubscriptions(
  deps: ImportDeps,
  lines: readonly LineOf<"subscription">[],
): Promise<Outcome[]> {
  const { tx } = deps;
  const partners = byKey(
    await queries.companiesBy(
      tx,
      "partner",
      lines.map((one) => one.partner_id),
    ),
  );
  const ids = lines.flatMap(({ id }) => id ?? []);
  const partnerIds = [...new Set([...partners.values()].map(({ id }) => id))];
  const known = await queries.subscriptionsBy(tx, ids, partnerIds);
  const directory = new Directory(
    "subscription",
    known.map(({ id, partnerId, deliveryKind }) => ({
      id,
      ...slotOf(partnerId, deliveryKind),
    })),
  );
  // The URLs of all lines are checked in parallel, because the look-up of a host name that does not resolve takes two
  // seconds.
  const urls = await Promise.all(
    lines.map((line) => checkNewWebhookUrl(line.webhook_url, deps.config.egress)),
  );
  const values: Parameters<typeof queries.insertSubscriptions>[1][number][] = [];
  const outcomes = lines.map((line, index) => {
    const partner = partners.get(line.partner_id);
    if (partner === undefined) return unknown("partner_id", "partner");
    const { id } = line;
    return directory.settle({ id, ...slotOf(partner.id, line.delivery_kind) }, () => {
      const headers = headersError(line.headers);
      if (headers !== undefined) return fault("headers", headers);
      const url = urls[index];
      if (url?.kind === "refused") return fault("webhook_url", url.reason);
      const interval = intervalError(line);
      if (interval !== undefined) return fault("batch_interval_hours", interval);
      if (!partner.isActive && line.is_active !== false)
        return fault("is_active", "must be false, because the partner is not active");
      if (line.is_active !== false && line.disabled_reason !== undefined)
        return fault("disabled_reason", "is only allowed for a subscription that is not active");
      values.push(subscriptionRow(deps, partner.id, line));
      return undefined;
    });
  });
  await queries.insertSubscriptions(tx, values);
  return outcomes;
}

function subscriptionRow(
  { box, config, now }: ImportDeps,
  partnerId: number,
  line: LineOf<"subscription">,
) {
  const { secret, previous_secret: previous, is_active: isActive = true } = line;
  const createdAt = parseInstant(line.created_at) ?? now;
  const id = line.id ?? ulid(now.getTime());
  const settings = settingsOf(line);
  const seal = (text: string) => box.seal(text, webhookSecretAssociatedData(partnerId, id));
  return {
    ...settings,
    id,
    partnerId,
    shard: randomInt(SHARDS),
    state: isActive ? ("active" as const) : ("disabled" as const),
    disabledAt: isActive ? null : (parseInstant(line.disabled_at) ?? now),
    disabledReason: isActive ? null : (line.disabled_reason ?? DISABLED_BY_HAND),
    disabledNote: line.disabled_note ?? null,
    nextBatchAt: firstBatchAt(settings, now, config.batchHourMs),
    sealedSecret: seal(secret),
    secretFingerprint: fingerprint(secret),
    sealedHeaders: sealHeaders(box, { partnerId, id }, line.headers),
    sealedPreviousSecret: previous === undefined ? null : seal(previous),
    previousSecretExpiresAt:
      previous === undefined ? null : (parseInstant(line.previous_secret_expires_at) ?? null),
    beginsAt: parseInstant(line.begins_at) ?? null,
    createdAt,
    updatedAt: now,
  };
}
