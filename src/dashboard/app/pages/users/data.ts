import { queryOptions } from "@tanstack/react-query";

import { answerOf, type ApiClient, pageAt, type QueryOf } from "../../api/client.ts";
import type { Role } from "../../session/identity.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";
import type { CompanyChoice } from "../companies/data.ts";

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
  partner_owner: "Manages the partner's webhooks, clients and accounts, and receives alert emails.",
  partner_admin: "Manages the partner's webhooks, clients and accounts.",
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
}

export const EMPTY_USER: UserDraft = {
  name: "",
  email: "",
  role: "partner_owner",
  company: undefined,
  store_ids: [],
  password: "",
};

/**
 * Changes the role in a draft. Clears the selected company if users with the new role belong to another type of
 * company.
 */
export function withRole(draft: UserDraft, role: Role): UserDraft {
  const stays = COMPANY_TYPE_OF[role] === COMPANY_TYPE_OF[draft.role];
  return { ...draft, role, company: stays ? draft.company : undefined, store_ids: [] };
}

function userBody(draft: UserDraft, platformId: number) {
  const { role, company, password } = draft;
  return {
    name: draft.name.trim(),
    email: draft.email.trim(),
    role,
    // Id 0 stands for "no company selected". No company has this id, so the API answers with a validation error
    // for the field.
    company_id: COMPANY_TYPE_OF[role] === "platform" ? platformId : (company?.id ?? 0),
    ...(role === "location_user" && { store_ids: draft.store_ids.map(Number) }),
    ...(password !== "" && { password }),
  };
}

export type UserFilter = QueryOf<ApiClient["admin"]["users"]["get"]>;

export const usersOptions = (api: ApiClient, filter: UserFilter) =>
  listOptions(["users", filter], (cursor) =>
    answerOf(api.admin.users.get({ query: { ...filter, ...pageAt(cursor) } })),
  );

export type User = RowOf<typeof usersOptions>;

/** Reads one user by id, for pages that show the user's name but only know the id. */
export const userOptions = (api: ApiClient, id: number | null | undefined) =>
  queryOptions({
    queryKey: ["user", id],
    queryFn: () => answerOf(api.admin.users({ id: String(id) }).get()),
    enabled: typeof id === "number",
    // Cached names may be up to a minute old, because names rarely change.
    staleTime: 60_000,
  });

/** Finds a user by email. Resolves to undefined if no user has the email. */
export async function findByEmail(api: ApiClient, email: string): Promise<User | undefined> {
  return (await answerOf(api.admin.users.get({ query: { email, ...pageAt(undefined) } }))).data[0];
}

/** Requests that create or change users. Each request invalidates the cached user list. */
export function useUserActions() {
  const { users } = useApi().admin;
  const { company: platform } = useSession();
  const { inBackground, andRead } = useRefresh(["users"]);
  return {
    create: (draft: UserDraft) => inBackground(answerOf(users.post(userBody(draft, platform.id)))),
    unlock: (id: number) => andRead(answerOf(users({ id }).unlock.post())),
    resetFactors: (id: number) => andRead(answerOf(users({ id })["second-factors"].delete())),
    setActive: (id: number, isActive: boolean) => {
      const user = users({ id });
      return andRead(answerOf(isActive ? user.activate.post() : user.deactivate.post()));
    },
  };
}
