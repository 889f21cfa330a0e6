import { contextError, passwordError } from "../auth/passwords/model.ts";
import type { ValidParts } from "../http/fields.ts";
import type { RuleErrors } from "../http/rules.ts";
import { isMailAddress } from "../lib/email.ts";
import { isOfErasedDomain } from "./erasure-rules.ts";
import { ROLES_OF, type Employer, type NewUser } from "./model.ts";

export const EMAIL_TAKEN = "is the address of another user";

/** Facts from the database on which the rules of a new user depend. */
interface UserFacts {
  /** The company of the new user; undefined if it does not exist or the body names no company. */
  readonly employer: Employer | undefined;
  /** Whether another user has the same email. */
  readonly isTaken: boolean;
}

/** Checks the rules of a new user that a schema cannot express. The email must be normalised. */
export function userErrors(
  body: ValidParts<NewUser>,
  { employer, isTaken }: UserFacts,
): RuleErrors {
  const { company_id: companyId, email, role, password } = body;
  const misplaced =
    role === undefined || employer === undefined ? undefined : roleError(role, employer);
  return {
    company_id: companyId !== undefined && employer === undefined ? "is not a company" : undefined,
    email: email === undefined ? undefined : emailError(email, isTaken),
    role: misplaced,
    password:
      password === undefined
        ? undefined
        : (passwordError(password) ??
          contextError(password, [email, body.name, ...(employer?.names ?? [])])),
    // The rule for stores depends on the role, so it is skipped if the role is not allowed in the company.
    store_ids: misplaced === undefined ? storesError(body, employer) : undefined,
  };
}

function emailError(email: string, isTaken: boolean): string | undefined {
  if (!isMailAddress(email)) return "must be a single email address without a display name";
  if (isOfErasedDomain(email)) return "must not be at the domain of erased users";
  return isTaken ? EMAIL_TAKEN : undefined;
}

function roleError(role: NewUser["role"], { type }: Employer): string | undefined {
  const roles: readonly string[] = ROLES_OF[type];
  if (roles.includes(role)) return undefined;
  return `must be one of ${roles.join(", ")} in a company of type ${type}`;
}

function storesError(
  body: ValidParts<NewUser>,
  employer: Employer | undefined,
): string | undefined {
  const { role, store_ids: storeIds } = body;
  if (role === "location_user" && (!("store_ids" in body) || storeIds?.length === 0))
    return "is required for a location user";
  if (storeIds === undefined || storeIds.length === 0) return undefined;
  if (role !== undefined && role !== "location_user") return "is only allowed for location users";
  const isForeign = (id: number | undefined) =>
    id !== undefined && employer !== undefined && !employer.storeIds.includes(id);
  return storeIds.some(isForeign) ? "must be stores of the account" : undefined;
}
