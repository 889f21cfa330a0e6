import { Elysia } from "elysia";

import { firstHand, inPerson, superAdmin } from "../../auth/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import type { AdminDeps } from "../actions/deps.ts";

export interface AdminRouteDeps extends AdminDeps {
  readonly checks: Checks;
}

export const administrating = superAdmin();
/** For every route that writes, but for those below (contract 3.10). */
export const changing = inPerson(administrating);
/** For plans, stores and their connections: nothing of these signs in, so a job may create them by a personal token. */
export const provisioning = firstHand(administrating);

/** An instance at a path below `/admin`, such as `/users`, or at `/admin` itself. */
export function adminRoutesBase<const P extends `/${string}` | "">(
  { checks }: Pick<AdminRouteDeps, "checks">,
  path: P,
) {
  return new Elysia({
    prefix: `${BASE_PATH}/admin${path}` as const,
    tags: ["Administration"],
  }).use(checks);
}
