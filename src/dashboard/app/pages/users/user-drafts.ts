import type { Role } from "../../session/roles.ts";
import type { CompanyChoice } from "../companies/company-drafts.ts";

/**
 * Maps a role to the type of company that users with this role belong to. The API rejects users in a company of
 * another type.
 */
export const COMPANY_TYPE_OF = {
  super_admin: "platform",
  partner_owner: "partner",
  partner_admin: "partner",
  account_owner: "account",
  account_user: "account",
  location_user: "account",
} as const satisfies Record<Role, string>;

/** Describes the permissions of each role to the operator who assigns it. */
export const ROLE_MEANING: Readonly<Record<Role, string>> = {
  super_admin: "Full access to the platform.",
  partner_owner: "Manages the partner's webhooks, keys and team, and receives alert emails.",
  partner_admin: "Manages the partner's webhooks and keys.",
  account_owner: "Works with the reviews of all stores, and is notified of flags.",
  account_user: "Works with the reviews of all stores.",
  location_user: "Works with the reviews of selected stores.",
};

/** Values of the form for a user before they are sent. */
export interface UserDraft {
  readonly name: string;
  readonly email: string;
  readonly role: Role;
  /** Company of the user; undefined for users of the platform. */
  readonly company: CompanyChoice | undefined;
  readonly store_ids: readonly string[];
  /** Initial password; an empty text creates the user without a password. */
  readonly password: string;
  /** Id of the user in the platform's own systems; empty for none. */
  readonly external_id: string;
}

export const EMPTY_USER: UserDraft = {
  name: "",
  email: "",
  role: "partner_owner",
  company: undefined,
  store_ids: [],
  password: "",
  external_id: "",
};

/** Fields of an existing user with which its form begins. */
interface SavedUser {
  readonly name: string;
  readonly email: string;
  readonly role: string;
  readonly store_ids: readonly number[];
  readonly external_id: string | null;
}

/** Returns the values with which the form for an existing user begins. */
export function draftOf(user: SavedUser, company: CompanyChoice | undefined): UserDraft {
  const role = ROLES_BY_NAME.get(user.role) ?? EMPTY_USER.role;
  const { name, email, external_id: externalId } = user;
  const storeIds = user.store_ids.map(String);
  return {
    ...EMPTY_USER,
    name,
    email,
    role,
    company,
    store_ids: storeIds,
    external_id: externalId ?? "",
  };
}

// The type assertion is needed because `Object.keys` returns `string[]`.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const ALL_ROLES = Object.keys(COMPANY_TYPE_OF) as Role[];
const ROLES_BY_NAME: ReadonlyMap<string, Role> = new Map(ALL_ROLES.map((role) => [role, role]));

/** Returns the roles that users of the same type of company can have. */
export const rolesBeside = (role: Role): readonly Role[] =>
  ALL_ROLES.filter((one) => COMPANY_TYPE_OF[one] === COMPANY_TYPE_OF[role]);

/**
 * Changes the role in a draft. Clears the selected company if users with the new role belong to another type of
 * company.
 */
export function withRole(draft: UserDraft, role: Role): UserDraft {
  const stays = COMPANY_TYPE_OF[role] === COMPANY_TYPE_OF[draft.role];
  return { ...draft, role, company: stays ? draft.company : undefined, store_ids: [] };
}

/** Returns the body of a new user. */
export function userBody(draft: UserDraft, platformId: number) {
  const { role, company, password } = draft;
  const externalId = draft.external_id.trim();
  return {
    name: draft.name.trim(),
    email: draft.email.trim(),
    role,
    // Id 0 stands for "no company selected". No company has this id, so the API answers with a validation error
    // for the field.
    company_id: COMPANY_TYPE_OF[role] === "platform" ? platformId : (company?.id ?? 0),
    ...(role === "location_user" && { store_ids: draft.store_ids.map(Number) }),
    ...(password !== "" && { password }),
    ...(externalId !== "" && { external_id: externalId }),
  };
}

/** Returns the fields that a form has changed, because the audit log names the fields of a request. */
export function userChanges(user: SavedUser, draft: UserDraft) {
  const { name, email, role } = draft;
  const externalId = draft.external_id.trim() || null;
  const storeIds = role === "location_user" ? draft.store_ids.map(Number) : [];
  const hasOtherStores = new Set(storeIds).symmetricDifference(new Set(user.store_ids)).size > 0;
  return {
    ...(name.trim() !== user.name && { name: name.trim() }),
    ...(email.trim() !== user.email && { email: email.trim() }),
    ...(role !== user.role && { role }),
    ...(role === "location_user" && hasOtherStores && { store_ids: storeIds }),
    ...(externalId !== user.external_id && { external_id: externalId }),
  };
}
