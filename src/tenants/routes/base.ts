import { Elysia } from "elysia";

import type { Db } from "../../../db/client.ts";
import { recordCompanyRead, type TenantData } from "../../auth/access/tenant-reads.ts";
import { firstHand, inPerson, superAdmin, withStepUp } from "../../auth/access/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { signedIn, type StatefulContext } from "../../http/request-state.ts";
import type { AdminDeps } from "../actions/deps.ts";
import { companyOfRecord, type OwnedKind } from "../queries/companies.ts";

export interface AdminRouteDeps extends AdminDeps {
  readonly checks: Checks;
}

export const administrating = superAdmin();
/** Access rule of administrative routes that write (contract 3.10), except those that use `provisioning`. */
export const changing = withStepUp(inPerson(administrating));
/**
 * Access rule for routes that create plans, stores and connections of stores. None of these records can sign in, so a
 * script may create them with a personal access token.
 */
export const provisioning = firstHand(administrating);

/**
 * Creates an Elysia instance for routes at a path below `/admin`, such as `/users`, or at `/admin` itself. The macro
 * `auditedRead` writes a row into the audit log when the operator reads data of a tenant.
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
      auditedRead: (kind: TenantData | null) => ({
        async beforeHandle({ requestState, params, query }: ReadContext) {
          if (kind === null) return;
          const companyId = await companyReadBy(deps.db, kind, {
            ...query,
            id: params?.["id"],
          });
          await recordCompanyRead(deps, signedIn(requestState), { companyId, kind });
        },
      }),
    });
}

interface ReadContext extends StatefulContext {
  /** Undefined for a path without parameters. */
  readonly params?: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
}

/** The query parameters by which a list is filtered, with the kind of record that each of them identifies. */
const KIND_OF_FILTER = [
  ["store_id", "store"],
  ["account_id", "company"],
  ["company_id", "company"],
  ["partner_id", "company"],
] as const;
const KIND_OF_PATH: Readonly<Partial<Record<TenantData, OwnedKind>>> = {
  stores: "store",
  users: "user",
  "store-review-sites": "connection",
};

/**
 * Returns the id of the company to which the record belongs that the path or a filter of a list identifies. Returns
 * null for a list without such a filter, and undefined if the record does not exist.
 */
async function companyReadBy(
  db: Db,
  kind: TenantData,
  { id, ...query }: Readonly<Record<string, unknown>>,
): Promise<number | null | undefined> {
  if (id !== undefined) return companyOfRecord(db, KIND_OF_PATH[kind] ?? "company", Number(id));
  const [field, owned] = KIND_OF_FILTER.find(([name]) => query[name] !== undefined) ?? [];
  return owned === undefined ? null : companyOfRecord(db, owned, Number(query[field]));
}
