import type { Db } from "../../../db/client.ts";
import type { Principal } from "../../http/principal.ts";
import type { VerifyTokenAnswer } from "../model.ts";
import { findPerson } from "../queries/users.ts";
import { readContext } from "./session-context.ts";

/** `GET /verify-token` answers whom the bearer token speaks for. */
export async function verifyToken(
  deps: { db: Db },
  principal: Principal,
): Promise<VerifyTokenAnswer> {
  const { context } = await readContext(deps.db, principal.userId);
  if (principal.impersonatorId === null) return context;
  const person = await findPerson(deps.db, principal.impersonatorId);
  if (person === undefined) throw new Error(`User ${principal.impersonatorId} is gone.`);
  const { id, email, name, companyId } = person;
  return {
    ...context,
    impersonation: { impersonator: { id, email, name, company_id: companyId } },
  };
}
