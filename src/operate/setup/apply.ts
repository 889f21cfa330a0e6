// Writes the desired state in one transaction that holds an advisory lock, so that two setups do not run at the same
// time.
import type { RawDb, RawTx } from "../../../db/client.ts";
import { FIRST_OWN_ID, ownId } from "../../../db/own-ids.ts";
import { companies, plans, users } from "../../../db/schema/companies.ts";
import { reviewSites } from "../../../db/schema/providers.ts";
import type { AuditAction } from "../../audit/model.ts";
import { recordAudit } from "../../audit/queries.ts";
import { makeInvitation } from "../../auth/passwords/invitations.ts";
import { hasEmail, resolveEmail } from "../../auth/passwords/email-queries.ts";
import { COMMAND_CLIENT } from "../../cli/oauth.ts";
import { providerSecretContext } from "../../intake/provider-model.ts";
import type { Config } from "../../lib/config.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { newSecret } from "../../lib/secrets.ts";
import { insertPlan, insertProvider } from "../../tenants/queries/stores.ts";
import { insertUser } from "../../tenants/queries/users.ts";
import { UsageError, type MissingRecords, type DesiredState } from "./desired-state.ts";

interface Deps {
  readonly box: SecretBox;
  readonly config: Pick<Config, "serverRoot">;
  readonly now: Date;
}

interface MadeRecord {
  readonly name: string;
  readonly isNew: boolean;
}

export interface Result {
  readonly company: MadeRecord;
  /**
   * The administrator whom the desired state names; without a name, the first active super-admin. Undefined if there is
   * none.
   */
  readonly admin:
    | {
        readonly email: string;
        readonly isNew: boolean;
        readonly hasPassword: boolean;
        /**
         * The invitation link that this run has created; undefined if an earlier link is still valid, or if a password
         * is set.
         */
        readonly link: string | undefined;
        readonly linkExpiresAt: Date | undefined;
      }
    | undefined;
  readonly plans: readonly MadeRecord[];
  /** The review sites. `secret` is present only for a site that this run has created, and is shown once. */
  readonly sites: readonly (MadeRecord & {
    readonly slug: string;
    readonly secret: string | undefined;
  })[];
}

const DEFAULT_COLOR = "#1f6feb";
const DEFAULT_COMPANY = "ReviewRelay";

export async function findMissing({ sql }: Pick<RawDb, "sql">): Promise<MissingRecords> {
  const [row] = await sql<MissingRecords[]>`
    select not exists (select from companies where type = 'platform') as company,
           not exists (select from users where role = 'super_admin' and is_active) as admin,
           not exists (select from plans) as plans,
           not exists (select from review_sites) as sites`;
  if (row === undefined) throw new Error("The select of a constant row returned no row.");
  return row;
}

export async function applyDesiredState(
  db: RawDb,
  deps: Deps,
  { admin: named, ...desired }: DesiredState,
): Promise<Result> {
  const wanted = named && { ...named, email: await resolveEmail(db, named.email) };
  return db.transaction(async (tx) => {
    await tx.sql`select pg_advisory_xact_lock(hashtext('reviewrelay:setup'))`;
    const company = await makeCompany(tx, deps, desired.company);
    const admin = await makeAdmin(tx, deps, { ...desired, admin: wanted, companyId: company.id });
    if (await makeCommandClient(tx, deps.now))
      await audit(tx, deps.now, "CLIENT_CREATED", { client_id: COMMAND_CLIENT.clientId });
    const newPlans = new Set<string>();
    for (const plan of desired.plans) if (await makePlan(tx, deps, plan)) newPlans.add(plan.name);
    const secrets = new Map<string, string>();
    for (const site of desired.sites) {
      const secret = await makeSite(tx, deps, site);
      if (secret !== undefined) secrets.set(site.slug, secret);
    }
    return { company, admin, ...(await listAll(tx, newPlans, secrets)) };
  });
}

const audit = (tx: RawTx, at: Date, action: AuditAction, details: Record<string, unknown>) =>
  recordAudit(tx, { at, action, actor: null, requestContext: null, details });

async function makeCompany(
  tx: RawTx,
  { now }: Deps,
  wanted = DEFAULT_COMPANY,
): Promise<MadeRecord & { id: number }> {
  const [known] = await tx.sql<{ id: number; name: string }[]>`
    select id, name from companies where type = 'platform'`;
  if (known !== undefined) return { ...known, isNew: false };
  const id = await ownId(tx, companies);
  await tx.sql`
    insert into companies (id, type, name, primary_color, created_at) overriding system value
    values (${id}, 'platform', ${wanted}, ${DEFAULT_COLOR}, ${now})`;
  await audit(tx, now, "COMPANY_CREATED", { company_id: id, type: "platform" });
  return { id, name: wanted, isNew: true };
}

interface AdminRow {
  readonly id: number;
  readonly email: string;
  readonly hasPassword: boolean;
  readonly role: string;
  readonly isActive: boolean;
  /** The time at which a valid invitation link of the user expires; null without one. */
  readonly expiresAt: Date | null;
}

async function makeAdmin(
  tx: RawTx,
  deps: Deps,
  { admin: wanted, newLink, companyId }: DesiredState & { companyId: number },
): Promise<Result["admin"]> {
  const { now } = deps;
  const known = await findAdmin(tx, wanted?.email, now);
  if (known !== undefined && known.role !== "super_admin")
    throw new UsageError(`${known.email} is a user of another company. Give another address.`);
  if (known?.isActive === false)
    throw new UsageError(`${known.email} is deactivated. Give another address.`);
  if (known === undefined && wanted === undefined) return undefined;
  let id = known?.id;
  const email = known?.email ?? wanted?.email ?? "";
  if (id === undefined) {
    if (await hasEmail(tx, email))
      throw new UsageError(
        `Several users have the address ${email} in different spellings. Give the exact spelling of one of them.`,
      );
    const row = { companyId, email, name: wanted?.name ?? email, role: "super_admin" } as const;
    id = await insertUser(tx, {
      ...row,
      id: await ownId(tx, users),
      passwordHash: null,
      externalId: null,
      storeIds: [],
      createdAt: now,
    });
    await audit(tx, now, "USER_CREATED", {
      user_id: id,
      company_id: companyId,
      role: "super_admin",
    });
  }
  const hasPassword = known?.hasPassword ?? false;
  const isLinked = hasPassword || (known?.expiresAt != null && !newLink);
  const invited = { userId: id, email, actor: null, requestContext: null, now };
  const made = isLinked ? undefined : await makeInvitation(tx, deps.config, invited);
  return {
    email,
    isNew: known === undefined,
    hasPassword,
    link: made?.link,
    linkExpiresAt: made?.expiresAt ?? known?.expiresAt ?? undefined,
  };
}

/**
 * Finds the administrator by email. Without an email, finds the first active super-admin. Super-admins whom setup
 * created (ids from `FIRST_OWN_ID` on) come before the others.
 */
async function findAdmin(
  { sql }: RawTx,
  email: string | undefined,
  now: Date,
): Promise<AdminRow | undefined> {
  const [row] = await sql<AdminRow[]>`
    select u.id, u.email, u.role, u.is_active as "isActive", u.password_hash is not null as "hasPassword",
           i.expires_at as "expiresAt"
      from users u left join invitations i on i.user_id = u.id and i.expires_at > ${now}
     where case when ${email ?? null}::text is null then u.role = 'super_admin' and u.is_active
                else u.email = ${email ?? null} end
     order by u.id < ${FIRST_OWN_ID}, u.id limit 1`;
  return row;
}

/** Creates the plan. Returns false if a plan with that name exists. */
async function makePlan(
  tx: RawTx,
  { now }: Deps,
  plan: DesiredState["plans"][number],
): Promise<boolean> {
  const known = await tx.sql`select from plans where name = ${plan.name}`;
  if (known.length > 0) return false;
  const id = await insertPlan(tx, { ...plan, id: await ownId(tx, plans) });
  await audit(tx, now, "PLAN_CREATED", { plan_id: id });
  return true;
}

/** Creates the review site and returns its secret. Returns undefined if a site with that slug exists. */
async function makeSite(
  tx: RawTx,
  { box, now }: Deps,
  site: DesiredState["sites"][number],
): Promise<string | undefined> {
  const known = await tx.sql`select from review_sites where slug = ${site.slug}`;
  if (known.length > 0) return undefined;
  const secret = newSecret();
  const sealedSecret = box.seal(secret, providerSecretContext(site.slug));
  const id = await ownId(tx, reviewSites);
  await insertProvider(tx, { ...site, id, requiresTimestamp: false, sealedSecret });
  await audit(tx, now, "PROVIDER_CREATED", { provider: site.slug });
  return secret;
}

async function listAll(
  { sql }: RawTx,
  newPlans: ReadonlySet<string>,
  secrets: ReadonlyMap<string, string>,
) {
  const allPlans = await sql<{ name: string }[]>`select name from plans order by id`;
  const allSites = await sql<{ slug: string; name: string }[]>`
    select slug, name from review_sites order by id`;
  return {
    plans: allPlans.map(({ name }) => ({ name, isNew: newPlans.has(name) })),
    sites: allSites.map(({ slug, name }) => {
      const secret = secrets.get(slug);
      return { slug, name, secret, isNew: secret !== undefined };
    }),
  };
}

/**
 * Creates the public OAuth client with which partners sign in through the command `reviewrelay`. Returns false if the
 * client exists.
 */
export async function makeCommandClient({ sql }: RawTx, now: Date): Promise<boolean> {
  const { clientId, name, redirectUris, scopes, grantTypes } = COMMAND_CLIENT;
  const known = await sql`select from oauth_clients where client_id = ${clientId}`;
  if (known.length > 0) return false;
  await sql`
    insert into oauth_clients (client_id, name, confidential, first_party, redirect_uris, scopes, grant_types,
                               require_pkce, created_at, updated_at)
    values (${clientId}, ${name}, false, false, ${[...redirectUris]}, ${[...scopes]}, ${[...grantTypes]},
            true, ${now}, ${now})`;
  return true;
}
