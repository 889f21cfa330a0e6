/** Maps a role, as the API names it in `user.role`, to its display name. */
const ROLE_NAMES = {
  super_admin: "Super-admin",
  partner_owner: "Partner owner",
  partner_admin: "Partner admin",
  account_owner: "Account owner",
  account_user: "Account user",
  location_user: "Location user",
} as const;

export type Role = keyof typeof ROLE_NAMES;

// The type assertion is needed because `Object.keys` returns `string[]`.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const ROLES = Object.keys(ROLE_NAMES) as readonly Role[];

/** Returns the display name of a role. A role that this version of the dashboard does not know is shown unchanged. */
export function roleName(role: string): string {
  const names: Readonly<Record<string, string>> = ROLE_NAMES;
  return names[role] ?? role;
}
