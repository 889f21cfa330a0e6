import type { Role } from "../../session/roles.ts";

/** Role → the type of company that it belongs to (the API refuses any other). */
export const COMPANY_TYPE_OF = {
  super_admin: "platform",
  partner_owner: "partner",
  partner_admin: "partner",
  account_owner: "account",
  account_user: "account",
  location_user: "account",
} as const satisfies Record<Role, string>;

/** Role → what it may do, for whoever hands it out. */
export const ROLE_MEANING: Readonly<Record<Role, string>> = {
  super_admin: "Runs the platform: everything on these pages.",
  partner_owner: "Manages the partner's webhooks, clients and accounts, and gets its warnings.",
  partner_admin: "Manages the partner's webhooks, clients and accounts.",
  account_owner: "Works with the reviews of every store, and is told of flags.",
  account_user: "Works with the reviews of every store.",
  location_user: "Works with the reviews of chosen stores alone.",
};
