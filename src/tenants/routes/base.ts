import { Elysia } from "elysia";

import { firstHand, inPerson, superAdmin, withStepUp } from "../../auth/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import type { AdminDeps } from "../actions/deps.ts";

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

/** Creates an Elysia instance for routes at a path below `/admin`, such as `/users`, or at `/admin` itself. */
export function adminRoutesBase<const P extends `/${string}` | "">(
  { checks }: Pick<AdminRouteDeps, "checks">,
  path: P,
) {
  return new Elysia({
    prefix: `${BASE_PATH}/admin${path}` as const,
    tags: ["Administration"],
  }).use(checks);
}
