import { Elysia } from "elysia";

import { firstHand, inPerson, superAdmin } from "../../auth/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import type { AdminDeps } from "../actions/deps.ts";

export interface AdminRouteDeps extends AdminDeps {
  readonly checks: Checks;
}

export const administrating = superAdmin();
/** Access rule of administrative routes that write, apart from `provisioning` (contract 3.10). */
export const changing = inPerson(administrating);
/**
 * Access rule for plans, stores and their connections. Nothing of these can sign in, so a job may create them with a
 * personal access token.
 */
export const provisioning = firstHand(administrating);

/** Makes an Elysia instance at a path below `/admin`, such as `/users`, or at `/admin` itself. */
export function adminRoutesBase<const P extends `/${string}` | "">(
  { checks }: Pick<AdminRouteDeps, "checks">,
  path: P,
) {
  return new Elysia({
    prefix: `${BASE_PATH}/admin${path}` as const,
    tags: ["Administration"],
  }).use(checks);
}
