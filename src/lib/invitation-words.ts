/** What the mail and the page of an invitation say about it. */
interface Invited {
  /** The person who invites; null for an operator, whose name customers do not see. */
  readonly by: { readonly name: string; readonly email?: string } | null;
  readonly company: string;
  /** The name under which the recipient knows the service. */
  readonly brand: string;
  readonly role: string;
}

/** What a person of a role is in the company; other roles are not named. */
const ROLE_WORDS: Readonly<Record<string, string>> = {
  partner_owner: " as an owner",
  account_owner: " as an owner",
  partner_admin: " as an admin",
};

/**
 * Returns who invites, to which place, and the sentence of both. Customers know an operator as the support of the
 * brand. A brand that has the name of the company is named once, so `who` is then undefined.
 */
export function invitationWords({ by, company, brand, role }: Invited) {
  const place = brand === company ? company : `${company} on ${brand}`;
  const support = brand === company ? undefined : `${brand} support`;
  const who = by?.name ?? support;
  const email = by?.email === undefined ? "" : ` (${by.email})`;
  const invited = who === undefined ? "You have been invited" : `${who}${email} invited you`;
  return { who, place, sentence: `${invited} to join ${place}${ROLE_WORDS[role] ?? ""}.` };
}
