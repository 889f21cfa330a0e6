import { Elysia } from "elysia";

import type { Db } from "../../../db/client.ts";
import { recordCompanyRead, type TenantData } from "../../auth/actions/tenant-reads.ts";
import { firstHand, inPerson, superAdmin, withStepUp } from "../../auth/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { requestStateOf, signedIn } from "../../http/request-state.ts";
import type { AdminDeps } from "../actions/deps.ts";
import { companyOfRecord, type OwnedKind } from "../queries/tenant-reads.ts";

export interface AdminRouteDeps extends AdminDeps {
  readonly checks: Checks;
}

export const administrating = superAdmin();
/** Access rule of administrative routes that write (contract 3.10), except those that use `provisioning`. */
export const changing = withStepUp(inPerson(administrating));
/**
 * Access rule for routes that create plans, stores and connections of stores. None of these can sign in, so a script
 * may create them with a personal access token.
 */
export const provisioning = firstHand(administrating);

/**
 * Creates an Elysia instance for routes at a path below `/admin`, such as `/users`, or at `/admin` itself. The macro
 * `looksInto` records that the operator reads data of a tenant.
 */
export function adminRoutesBase<const P extends `/${string}` | "">(
  deps: Pick<AdminRouteDeps, "checks" | "db" | "clock">,
  path: P,
) {
  return new Elysia({
    prefix: `${BASE_PATH}/admin${path}` as const,
    tags: ["Administration"],
  })
    .use(deps.checks)
    .macro({
      looksInto: (kind: TenantData | null) => ({
        async beforeHandle({ request, params, query }: LookContext) {
          if (kind === null) return;
          const companyId = await companyLookedInto(deps.db, kind, {
            ...query,
            id: params?.["id"],
          });
          await recordCompanyRead(deps, signedIn(requestStateOf(request)), { companyId, kind });
        },
      }),
    });
}

interface LookContext {
  readonly request: Request;
  /** Undefined for a path without parameters. */
  readonly params?: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
}

/** The kind of record that a path or a filter of a list names by its id. */
const NAMED_BY = [
  ["store_id", "store"],
  ["account_id", "company"],
  ["company_id", "company"],
  ["partner_id", "company"],
] as const;
const NAMED_BY_PATH: Readonly<Partial<Record<TenantData, OwnedKind>>> = {
  stores: "store",
  users: "user",
  "store-review-sites": "connection",
};

/** Returns the company of the record in the path, or of a list's filter; null for a list without such a filter. */
async function companyLookedInto(
  db: Db,
  kind: TenantData,
  { id, ...query }: Readonly<Record<string, unknown>>,
): Promise<number | null | undefined> {
  if (id !== undefined) return companyOfRecord(db, NAMED_BY_PATH[kind] ?? "company", Number(id));
  const [field, owned] = NAMED_BY.find(([name]) => query[name] !== undefined) ?? [];
  return owned === undefined ? null : companyOfRecord(db, owned, Number(query[field]));
}
