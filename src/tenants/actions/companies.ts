import { findRow } from "../../http/list.ts";
import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../auth/queries/audit.ts";
import { endAccessOfCompanies } from "../../auth/actions/sessions.ts";
import type { ValidParts } from "../../http/fields.ts";
import type { RuleErrors } from "../../http/rules.ts";
import type { Caller } from "../../http/principal.ts";
import { invalid } from "../../lib/problem.ts";
import type { Company, NewAccount, NewPartner } from "../model.ts";
import { changeAccount, changePartner, holdWholeQueue } from "../../webhooks/actions/suspension.ts";
import type { HeldAction } from "../../webhooks/actions/subscriptions.ts";
import * as queries from "../queries/companies.ts";
import { hasPlan, plansOf } from "../queries/stores.ts";
import { existing, type AdminDeps } from "./deps.ts";

const DOMAIN_TAKEN = "is the domain of another partner";
/** The platform's brand colour, which a company gets if its request names no colour. */
const DEFAULT_COLOR = "#1f6feb";
/** The highest number of plan names that the error about an unknown plan lists. */
const NAMED_PLANS = 20;

export function findCompany(
  { db }: { readonly db: Db },
  type: Company["type"],
  id: string | undefined,
): Promise<Company> {
  return findRow(id, (rowId) => queries.companyById(db, type, rowId));
}

export function nameOfCompany({ db }: { readonly db: Db }, id: string | undefined) {
  return findRow(id, (rowId) => queries.nameOfCompany(db, rowId));
}

export async function newPartnerErrors(
  { db }: { readonly db: Db },
  { white_label: whiteLabel }: ValidParts<NewPartner>,
): Promise<RuleErrors> {
  const domain = whiteLabel?.domain;
  const isTaken = domain !== undefined && (await queries.hasDomain(db, domain));
  return { "white_label.domain": isTaken ? DOMAIN_TAKEN : undefined };
}

/**
 * Creates a partner from a body that has passed `newPartnerErrors`. If another request has taken the domain since
 * then, the answer is a 422 as well.
 */
export async function createPartner(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  body: NewPartner,
): Promise<Company> {
  const row = {
    ...brandingOf(body),
    type: "partner",
    name: body.name,
    brandName: body.white_label?.brand_name ?? null,
    domain: body.white_label?.domain ?? null,
    partnerId: null,
    planId: null,
  } as const;
  try {
    return await create(deps, caller, row, async () => {});
  } catch (error) {
    if (!queries.isDomainTaken(error)) throw error;
    throw invalid({ "white_label.domain": [DOMAIN_TAKEN] });
  }
}

/**
 * Validates the fields of a new account: the partner and the plan must exist. `createAccount` does not check again,
 * because partners and plans are never deleted.
 */
export async function newAccountErrors(
  { db }: { readonly db: Db },
  { partner_id: partnerId, plan_id: planId }: ValidParts<NewAccount>,
): Promise<RuleErrors> {
  const [partner, isPlan] = await Promise.all([
    partnerId === undefined ? undefined : queries.companyById(db, "partner", partnerId),
    planId === undefined || hasPlan(db, { id: planId }),
  ]);
  return {
    partner_id: partnerId !== undefined && partner === undefined ? "is not a partner" : undefined,
    plan_id: isPlan ? undefined : `must be one of ${await newestPlans(db)}`,
  };
}

async function newestPlans(db: Db): Promise<string> {
  const plans = await plansOf(db, { limit: NAMED_PLANS, after: undefined });
  const named = plans.toReversed().map(({ id, name }) => `${id} (${name})`);
  return named.join(", ") || "the plans, of which there is none";
}

export async function createAccount(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  body: NewAccount,
): Promise<Company> {
  const { name, partner_id: partnerId, plan_id: planId, stores = [] } = body;
  const none = { brandName: null, domain: null };
  const row = { ...brandingOf(body), ...none, type: "account", name, partnerId, planId } as const;
  return create(deps, caller, row, (tx, id) => queries.insertStores(tx, { id, partnerId }, stores));
}

function brandingOf(body: NewPartner | NewAccount) {
  return { primaryColor: body.primary_color ?? DEFAULT_COLOR, logoUrl: body.logo_url ?? null };
}

async function create(
  { db, clock }: Pick<AdminDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  row: Omit<queries.NewCompanyRow, "createdAt">,
  addStores: (tx: Tx, id: number) => Promise<void>,
): Promise<Company> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    const id = await queries.insertCompany(tx, { ...row, createdAt: now });
    await addStores(tx, id);
    const details = { company_id: id, type: row.type };
    await recordAudit(tx, {
      at: now,
      action: "COMPANY_CREATED",
      actor: principal,
      requestContext,
      details,
    });
    return existing(await queries.companyById(tx, row.type, id));
  });
}

/** The reversal of a deactivation: whether the events that were held meanwhile are delivered or skipped. */
interface Activation {
  readonly held: HeldAction;
}

/**
 * Activates or, without `activation`, deactivates a company and, if it is a partner, its accounts. Both changes delete
 * every token of the users (contract 10.1). Activation deletes tokens too: a sign-in that was checked before the
 * deactivation may have received its token afterwards, and activation would make that token valid.
 *
 * The webhooks change in the same transaction: nothing that happens after its commit is sent for an inactive company.
 */
export async function setCompanyActive(
  deps: Pick<AdminDeps, "db" | "clock" | "writerPool" | "schedule" | "config">,
  caller: Caller,
  { id, type, partnerId }: Pick<Company, "id" | "type" | "partnerId">,
  activation?: Activation,
): Promise<Company> {
  const now = deps.clock.now();
  const tenantId = partnerId ?? id;
  const held = activation?.held;
  const isActive = activation !== undefined;
  if (type === "account" && held === "skip") await holdWholeQueue(deps.db, tenantId, now);
  const { company, changed } = await deps.writerPool.transaction([tenantId], async (tx) => {
    if (!(await queries.setCompanyActive(tx, { id, type }, isActive)))
      return { company: existing(await queries.companyById(tx, type, id)), changed: [] };
    const subscriptions =
      type === "partner"
        ? await changePartner(tx, caller, id, { now, held, hourMs: deps.config.batchHourMs })
        : await changeAccount(tx, { id, partnerId: tenantId }, { held });
    const revoked = await endAccessOfCompanies(tx, await queries.treeOf(tx, id), now);
    const { principal: actor, requestContext } = caller;
    const action = isActive ? "COMPANY_ACTIVATED" : "COMPANY_DEACTIVATED";
    const details = { company_id: id, type, ...(isActive ? { held } : { revoked }) };
    await recordAudit(tx, { at: now, action, actor, requestContext, details });
    return {
      company: existing(await queries.companyById(tx, type, id)),
      changed: subscriptions.map(({ id: subscriptionId, shard }) => ({ subscriptionId, shard })),
    };
  });
  // The wakes make the dispatcher read the new states before its next POSTs.
  if (changed.length > 0) await deps.schedule.wake(changed);
  return company;
}
