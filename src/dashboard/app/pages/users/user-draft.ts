import type { Role } from "../../session/roles.ts";
import type { CompanyChoice } from "../companies/data.ts";
import { COMPANY_TYPE_OF } from "./role-meaning.ts";

/** What the form holds while it is filled in. */
export interface UserDraft {
  readonly name: string;
  readonly email: string;
  readonly role: Role;
  /** It is undefined for the platform's own people. */
  readonly company: CompanyChoice | undefined;
  readonly storeIds: readonly string[];
  /** It is empty for a user without a password. */
  readonly password: string;
}

export const EMPTY_USER: UserDraft = {
  name: "",
  email: "",
  role: "partner_owner",
  company: undefined,
  storeIds: [],
  password: "",
};

/** Changes the role; where it belongs to the other type of company, the company has to be chosen anew. */
export function withRole(draft: UserDraft, role: Role): UserDraft {
  const stays = COMPANY_TYPE_OF[role] === COMPANY_TYPE_OF[draft.role];
  return { ...draft, role, company: stays ? draft.company : undefined, storeIds: [] };
}

export function userBody(draft: UserDraft, platformId: number) {
  const { role, company, storeIds, password } = draft;
  return {
    name: draft.name.trim(),
    email: draft.email.trim(),
    role,
    // No company has the number 0: the server's answer names the field.
    company_id: COMPANY_TYPE_OF[role] === "platform" ? platformId : (company?.id ?? 0),
    ...(role === "location_user" && { store_ids: storeIds.map(Number) }),
    ...(password !== "" && { password }),
  };
}
