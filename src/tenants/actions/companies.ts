import { findRow } from "../../http/ids.ts";
import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import { endAccessOfCompanies } from "../../auth/sign-in/sessions.ts";
import type { ValidParts } from "../../http/fields.ts";
import type { RuleErrors } from "../../http/rules.ts";
import type { Caller } from "../../http/principal.ts";
import {
  type AccountUpdate,
  type Company,
  DEFAULT_COLOR,
  type NewAccount,
  type NewPartner,
  type PartnerUpdate,
} from "../model.ts";
import {
  holdWholeQueue,
  suspendAccount,
  suspendPartner,
} from "../../webhooks/actions/suspension.ts";
import type { HeldAction } from "../../webhooks/actions/state.ts";
import { Problem } from "../../lib/problem.ts";
import * as queries from "../queries/companies.ts";
import { isToBeDeleted } from "../queries/deletions.ts";
import { hasPlan, plansOf } from "../queries/stores.ts";
import { existing, type AdminDeps } from "./deps.ts";
import { changeRecord, deleteRecord, updateRecord } from "./records.ts";

const DOMAIN_TAKEN = "is the domain of another partner";
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

export async function partnerErrors(
  { db }: { readonly db: Db },
  { white_label: whiteLabel }: ValidParts<PartnerUpdate>,
  changed?: Company,
): Promise<RuleErrors> {
  const domain = whiteLabel?.domain;
  const isTaken = domain !== undefined && (await queries.hasDomain(db, domain, changed?.id));
  return { "white_label.domain": isTaken ? DOMAIN_TAKEN : undefined };
}

const CONFLICTS = {
  companies_white_label_domain_key: ["white_label.domain", DOMAIN_TAKEN],
} as const;

/** Creates a partner from a body that has passed `partnerErrors`. */
export async function createPartner(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  body: NewPartner,
): Promise<Company> {
  const row = {
    ...brandingOf(body, DEFAULT_COLOR),
    type: "partner",
    name: body.name,
    brandName: body.white_label?.brand_name ?? null,
    domain: body.white_label?.domain ?? null,
    partnerId: null,
    planId: null,
    externalId: body.external_id ?? null,
  } as const;
  return create(deps, caller, row, async () => {});
}

/**
 * Validates the fields of an account: the partner and the plan must exist. If one of them is deleted after this
 * validation, a foreign key makes the transaction that writes the account fail.
 */
export async function accountErrors(
  { db }: { readonly db: Db },
  {
    partner_id: partnerId,
    plan_id: planId,
  }: ValidParts<Pick<NewAccount, "partner_id" | "plan_id">>,
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
  return named.join(", ") || "the plans, but there are none; create a plan first";
}

export async function createAccount(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  body: NewAccount,
): Promise<Company> {
  const { name, partner_id: partnerId, plan_id: planId, stores = [] } = body;
  const rest = { brandName: null, domain: null, externalId: body.external_id ?? null };
  const partner = await queries.companyById(deps.db, "partner", partnerId);
  const branding = brandingOf(body, partner?.primaryColor ?? DEFAULT_COLOR);
  const row = { ...branding, ...rest, type: "account", name, partnerId, planId } as const;
  return create(deps, caller, row, (tx, id) => queries.insertStores(tx, { id, partnerId }, stores));
}

function brandingOf(body: NewPartner | NewAccount, color: string) {
  return { primaryColor: body.primary_color ?? color, logoUrl: body.logo_url ?? null };
}

function create(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  row: Omit<queries.NewCompanyRow, "createdAt">,
  addStores: (tx: Tx, id: number) => Promise<void>,
): Promise<Company> {
  return changeRecord(deps, caller, CONFLICTS, async (tx, now) => {
    const id = await queries.insertCompany(tx, { ...row, createdAt: now });
    await addStores(tx, id);
    const details = { company_id: id, type: row.type };
    const result = existing(await queries.companyById(tx, row.type, id));
    return { result, change: { action: "COMPANY_CREATED", details } };
  });
}

/** Changes a partner with a body that has passed `partnerErrors`. Absent fields stay. */
export function changePartner(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  partner: Company,
  body: PartnerUpdate,
): Promise<Company> {
  const { white_label: label } = body;
  const changes = {
    ...changesOf(body),
    ...(label !== undefined && {
      whiteLabelEnabled: label !== null,
      brandName: label?.brand_name ?? null,
      whiteLabelDomain: label?.domain ?? null,
    }),
  };
  return changeCompany(deps, caller, partner, { changes, body });
}

/** Changes an account with a body that has passed `accountErrors`. Absent fields stay. */
export function changeAccount(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  account: Company,
  body: AccountUpdate,
): Promise<Company> {
  const changes = { ...changesOf(body), planId: body.plan_id };
  return changeCompany(deps, caller, account, { changes, body });
}

function changesOf(
  body: Pick<
    PartnerUpdate,
    "name" | "primary_color" | "logo_url" | "external_id" | "require_second_factor"
  >,
) {
  const { name, primary_color: primaryColor, logo_url: logoUrl, external_id: externalId } = body;
  const requireSecondFactor = body.require_second_factor;
  return { name, primaryColor, logoUrl, externalId, requireSecondFactor };
}

/** Updates the given columns of a company and leaves undefined ones unchanged. */
function changeCompany(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  { id, type }: Company,
  one: { readonly changes: Parameters<typeof queries.updateCompany>[2]; readonly body: object },
): Promise<Company> {
  return updateRecord(deps, caller, one.body, {
    record: { table: "companies", id },
    conflicts: CONFLICTS,
    action: "COMPANY_UPDATED",
    ids: { company_id: id, type },
    read: async (tx) => withWhiteLabel(await queries.companyById(tx, type, id)),
    write: (tx) => queries.updateCompany(tx, id, one.changes),
  });
}

/** Adds the field `white_label` as a body of the API has it, for the audit log. */
function withWhiteLabel(company: Company | undefined) {
  if (company === undefined) return undefined;
  const { whiteLabelEnabled, brandName: brand_name, domain } = company;
  return { ...company, whiteLabel: whiteLabelEnabled ? { brand_name, domain } : null };
}

/** Deletes a company that no other record refers to. */
export function deleteCompany(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  { id, type, name }: Company,
): Promise<void> {
  const change = { action: "COMPANY_DELETED", details: { company_id: id, type, name } } as const;
  return deleteRecord(deps, caller, change, (tx) => queries.deleteCompany(tx, id));
}

/**
 * Options of an activation. `held` says whether the events that were held while the company was inactive are delivered
 * or skipped.
 */
interface Activation {
  readonly held: HeldAction;
}

/**
 * Activates or, without `activation`, deactivates a company and, if it is a partner, its accounts. Both changes delete
 * every token of the users (contract 10.1). Activation deletes tokens too: a sign-in that was checked before the
 * deactivation may have received its token after it, and the activation would make that token valid.
 *
 * The subscriptions are suspended or resumed in the same transaction, so that no event that happens after its commit is
 * sent for an inactive company.
 */
export async function setCompanyActive(
  deps: Pick<AdminDeps, "db" | "clock" | "writerPool" | "schedule" | "config">,
  caller: Caller,
  {
    id,
    type,
    partnerId,
    isActive: wasActive,
  }: Pick<Company, "id" | "type" | "partnerId" | "isActive">,
  activation?: Activation,
): Promise<Company> {
  const now = deps.clock.now();
  const tenantId = partnerId ?? id;
  const held = activation?.held;
  const isActive = activation !== undefined;
  if (type === "account" && held === "skip" && !wasActive)
    await holdWholeQueue(deps.db, tenantId, now);
  const { company, changed } = await deps.writerPool.transaction([tenantId], async (tx) => {
    if (!(await queries.setCompanyActive(tx, { id, type }, isActive)))
      return { company: existing(await queries.companyById(tx, type, id)), changed: [] };
    if (isActive && (await isToBeDeleted(tx, { id, partnerId })))
      throw new Problem("deletion_requested");
    const subscriptions =
      type === "partner"
        ? await suspendPartner(tx, caller, id, { now, held, hourMs: deps.config.batchHourMs })
        : await suspendAccount(tx, { id, partnerId: tenantId }, { held });
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
  // The wakes make the dispatchers read the new states of the subscriptions before they send the next POSTs.
  if (changed.length > 0) deps.schedule.wake(changed);
  return company;
}
