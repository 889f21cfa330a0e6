/** Role as the API names it (`user.role`) → its name for people. */
const ROLE_NAMES = {
  super_admin: "Super-admin",
  partner_owner: "Partner owner",
  partner_admin: "Partner admin",
  account_owner: "Account owner",
  account_user: "Account user",
  location_user: "Location user",
} as const;

export type Role = keyof typeof ROLE_NAMES;

// TypeScript gives the keys of the object above as texts.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const ROLES = Object.keys(ROLE_NAMES) as readonly Role[];

/** A role that is newer than this page is shown as it is. */
export function roleName(role: string): string {
  const names: Readonly<Record<string, string>> = ROLE_NAMES;
  return names[role] ?? role;
}
