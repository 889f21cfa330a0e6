import type { Db } from "../../../db/client.ts";
import * as users from "./users.ts";
import type { AdminDeps } from "./deps.ts";
import type { User } from "../model.ts";
import { recordAccessDenied } from "../../auth/actions/access-denied.ts";
import { authorityInPerson, excessOf } from "../../auth/authority.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import type { ValidParts } from "../../http/fields.ts";
import type { Found, Page } from "../../http/list.ts";
import type { Clock } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import type { NewTeammate } from "../team-model.ts";

type ReadingDeps = Pick<AdminDeps, "db">;

/** The access rule admits users of a partner only; this says it to the types. */
export function partnerOf({ partnerId }: Pick<Principal, "partnerId">): number {
  if (partnerId === null) throw new Problem("forbidden");
  return partnerId;
}

export function listTeam(
  deps: ReadingDeps,
  principal: Principal,
  { is_active }: { readonly is_active?: "true" | "false" },
  page: Page,
): Promise<Found<User>> {
  const filter = { company_id: partnerOf(principal), ...(is_active && { is_active }) };
  return users.listUsers(deps, filter, page);
}

/**
 * One of the caller's own team. Anybody else, in an account of the partner or elsewhere, is 403 with an AUTHZ_DENIED row:
 * a partner's people manage themselves, and no others (contract 3.9 and 10.5).
 */
export async function findTeammate(
  deps: { readonly db: Db; readonly clock: Clock },
  { principal, requestContext }: Caller,
  id: string | undefined,
): Promise<User> {
  const user = await users.findUser(deps, id);
  const authority = { ...authorityInPerson(principal), partnerId: user.companyId };
  const isOfTeam = user.companyType === "partner" && excessOf(principal, authority) === undefined;
  if (isOfTeam) return user;
  const details = { user_id: user.id, reason: "foreign_record" };
  await recordAccessDenied(deps, principal, { requestContext, details });
  throw new Problem("forbidden");
}

export function newTeammateErrors(
  deps: ReadingDeps,
  principal: Principal,
  body: ValidParts<NewTeammate>,
) {
  return users.newUserErrors(deps, { ...body, company_id: partnerOf(principal) });
}

/** Mails an invitation: the first password is for nobody else to know. */
export function inviteTeammate(deps: AdminDeps, caller: Caller, body: NewTeammate): Promise<User> {
  return users.createUser(deps, caller, { ...body, company_id: partnerOf(caller.principal) });
}
