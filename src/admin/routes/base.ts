import { Elysia } from "elysia";

import { inPerson, superAdmin } from "../../auth/guard.ts";
import { BASE_PATH } from "../../http/base-path.ts";
import type { Checks } from "../../http/checks.ts";
import type { AdminDeps } from "../actions/deps.ts";

export interface AdminRouteDeps extends AdminDeps {
  readonly checks: Checks;
}

export const administrating = superAdmin();
/** For what makes or changes somebody or something that acts, or whom it acts for (contract 3.9). */
export const changing = inPerson(administrating);

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
