import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import { endAccessOfCompanies } from "../../auth/actions/end-access.ts";
import type { Page } from "../../http/page.ts";
import { invalid, type FieldErrors } from "../../lib/problem.ts";
import type { AccountQuery, Company, Named, NewAccount, NewPartner } from "../model.ts";
import * as queries from "../queries/companies.ts";
import { found, written, type AdminDeps, type Caller } from "./deps.ts";

/** The platform's own colour. */
const DEFAULT_COLOR = "#1f6feb";

type Kind = Company["type"];

export function listCompanies(
  { db }: { readonly db: Db },
  type: Kind,
  query: Pick<AccountQuery, "partner_id" | "is_active" | "name">,
  page: Page,
): Promise<Company[]> {
  return queries.companiesOf(db, type, query, page);
}

/** There are few, and nothing here makes one: all of them at once. */
export function listPlans({ db }: { readonly db: Db }): Promise<Named[]> {
  return queries.plans(db);
}

export function findCompany(
  { db }: { readonly db: Db },
  type: Kind,
  id: string | undefined,
): Promise<Company> {
  return found(id, (rowId) => queries.companyById(db, type, rowId));
}

export function nameOfCompany({ db }: { readonly db: Db }, id: string | undefined) {
  return found(id, (rowId) => queries.nameOfCompany(db, rowId));
}

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
    throw invalid({ "white_label.domain": ["is the domain of another partner"] });
  }
}

export async function createAccount(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  body: NewAccount,
): Promise<Company> {
  const { name, partner_id: partnerId, plan_id: planId, stores = [] } = body;
  await checkReferences(deps.db, body);
  const none = { brandName: null, domain: null };
  const row = { ...brandingOf(body), ...none, type: "account", name, partnerId, planId } as const;
  return create(deps, caller, row, (tx, id) => queries.insertStores(tx, { id, partnerId }, stores));
}

async function checkReferences(db: Db, body: NewAccount): Promise<void> {
  const errors: FieldErrors = {};
  const partner = await queries.companyById(db, "partner", body.partner_id);
  if (partner === undefined) errors["partner_id"] = ["is not a partner"];
  const plans = await queries.plans(db);
  if (!plans.some(({ id }) => id === body.plan_id)) {
    const known = plans.map(({ id, name }) => `${id} (${name})`).join(", ");
    errors["plan_id"] = [`must be one of ${known}`];
  }
  if (Object.keys(errors).length > 0) throw invalid(errors);
}

function brandingOf(body: NewPartner | NewAccount) {
  return { primaryColor: body.primary_color ?? DEFAULT_COLOR, logoUrl: body.logo_url ?? null };
}

async function create(
  { db, clock }: Pick<AdminDeps, "db" | "clock">,
  { principal, call }: Caller,
  row: Omit<queries.NewCompanyRow, "createdAt">,
  furnish: (tx: Tx, id: number) => Promise<void>,
): Promise<Company> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    const id = await queries.insertCompany(tx, { ...row, createdAt: now });
    await furnish(tx, id);
    const details = { company_id: id, type: row.type };
    await recordAudit(tx, { at: now, action: "COMPANY_CREATED", actor: principal, call, details });
    return written(await queries.companyById(tx, row.type, id));
  });
}

/**
 * Stops or restarts a company, and with a partner its accounts. Every token of theirs is deleted (decisions.md 7). So
 * is whatever was issued between the check of a sign-in and its stop, on the restart: else it would come to life.
 */
export async function setCompanyActive(
  { db, clock }: Pick<AdminDeps, "db" | "clock">,
  { principal, call }: Caller,
  { id, type }: Pick<Company, "id" | "type">,
  isActive: boolean,
): Promise<Company> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    if (await queries.setCompanyActive(tx, { id, type }, isActive)) {
      const revoked = await endAccessOfCompanies(tx, await queries.treeOf(tx, id), now);
      const action = isActive ? "COMPANY_ACTIVATED" : "COMPANY_DEACTIVATED";
      const details = { company_id: id, type, ...(!isActive && { revoked }) };
      await recordAudit(tx, { at: now, action, actor: principal, call, details });
    }
    return written(await queries.companyById(tx, type, id));
  });
}
