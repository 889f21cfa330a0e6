import { type Static, Type } from "@sinclair/typebox";

import type { companies } from "../../db/schema/companies.ts";
import { email, newPassword, userObject, whiteLabelObject } from "../auth/model.ts";
import { pageQuery } from "../http/list.ts";
import { isRowId } from "../http/ids.ts";
import { literals, type Role } from "../http/principal.ts";
import { type RowOf, shown } from "../http/shown.ts";
import {
  instantAnswer,
  instantText,
  orNull,
  rowId,
  searchText,
  lineText,
  storableText,
} from "../http/text.ts";
import { requirement } from "./security-model.ts";

export const NAME_CHARS = 200;
const URL_CHARS = 2_000;
const DOMAIN_CHARS = 253;
/**
 * Maximum length of an email address: RFC 5321, 4.5.3.1.3 allows a path of 256 octets, and two of them are its angle
 * brackets.
 */
const EMAIL_CHARS = 254;
const MAX_STORES = 500;

export const closed = { additionalProperties: false };
export const displayName = Object.assign(lineText([1, NAME_CHARS]), {
  title: "DisplayName",
  examples: ["Main Street"],
});
const nullableText = orNull(Type.String());
const booleanText = literals(["true", "false"]);

// ------------------------------------------------------------------------------------------------ companies

/** The platform's brand colour, which a partner gets if its request names no colour. */
export const DEFAULT_COLOR = "#1f6feb";

/**
 * Fields for the branding of a company, which its users see. If a new company has no `primary_color`, an account gets
 * the color of its partner, and a partner `DEFAULT_COLOR`.
 */
const brandFields = {
  primary_color: Type.Optional(
    Type.String({ pattern: "^#[0-9A-Fa-f]{6}$", explain: "must be a colour such as #1f6feb" }),
  ),
  logo_url: Type.Optional(
    Type.Union(
      [Type.String({ pattern: "^https://[^\\s\"'<>\\\\]+$", maxLength: URL_CHARS }), Type.Null()],
      { explain: "must be an https URL, or null" },
    ),
  ),
};

const EXTERNAL_ID_CHARS = 200;
export const externalId = Object.assign(storableText([1, EXTERNAL_ID_CHARS]), {
  title: "ExternalId",
  examples: ["crm-4711"],
  description: "The platform's own id of the record, unique per kind.",
});
const externalIdOrNull = orNull(externalId, {
  explain: `must be text of 1 to ${EXTERNAL_ID_CHARS} characters, or null`,
});
/** The field `external_id` for the body of a new record. `changedExternalId` is the field for the body of a change. */
export const withExternalId = { external_id: Type.Optional(externalId) };
export const changedExternalId = { external_id: externalIdOrNull };
/** Response fields with which a platform synchronizes its records with those of ReviewRelay. */
export const syncedFields = {
  external_id: orNull(Type.String(), { description: "The platform's own id." }),
  updated_at: instantAnswer(),
};
export const updatedSince = { updated_since: Type.Optional(instantText()) };

const whiteLabel = Type.Object(
  {
    brand_name: lineText([1, NAME_CHARS]),
    domain: Type.String({
      pattern: "^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z0-9-]{2,63}$",
      maxLength: DOMAIN_CHARS,
      explain: "must be a domain in lower case, such as reviews.partner.example",
    }),
  },
  { ...closed, title: "WhiteLabelInput", description: "Branding of its own." },
);

export const PartnerBody = Type.Object(
  { name: displayName, ...brandFields, white_label: Type.Optional(whiteLabel), ...withExternalId },
  {
    ...closed,
    title: "PartnerInput",
    examples: [
      {
        name: "Stellar Partners",
        primary_color: "#1f6feb",
        white_label: { brand_name: "Stellar Reviews", domain: "reviews.partner.example" },
        external_id: "crm-4711",
      },
    ],
  },
);
export type NewPartner = Static<typeof PartnerBody>;

/**
 * The body of a change of a partner: any subset of its fields. Null removes a logo, the white label or an external id.
 */
export const PartnerChanges = Type.Partial(
  Type.Object({
    name: displayName,
    ...brandFields,
    white_label: orNull(whiteLabel),
    ...changedExternalId,
    ...requirement,
  }),
  {
    ...closed,
    title: "PartnerChanges",
    examples: [{ name: "Stellar Partners", primary_color: "#1f6feb" }],
  },
);
export type PartnerUpdate = Static<typeof PartnerChanges>;

export const AccountBody = Type.Object(
  {
    name: displayName,
    partner_id: rowId(),
    plan_id: rowId(),
    ...brandFields,
    /** Names of stores to create together with the account. */
    stores: Type.Optional(Type.Array(displayName, { maxItems: MAX_STORES })),
    ...withExternalId,
  },
  {
    ...closed,
    title: "AccountInput",
    examples: [{ name: "Harbour Café", partner_id: 7, plan_id: 4, stores: ["Main Street"] }],
  },
);
export type NewAccount = Static<typeof AccountBody>;

/** The body of a change of an account: any subset of its fields. The partner of an account cannot change. */
export const AccountChanges = Type.Partial(
  Type.Object({
    name: displayName,
    plan_id: rowId(),
    ...brandFields,
    ...changedExternalId,
    ...requirement,
  }),
  { ...closed, title: "AccountChanges", examples: [{ plan_id: 4 }] },
);
export type AccountUpdate = Static<typeof AccountChanges>;

/** Body of the activation of a company. */
export const ActivationBody = Type.Object(
  {
    held: Type.Optional(
      literals(["deliver", "skip"], {
        description: "Whether held webhook events are delivered or skipped.",
      }),
    ),
  },
  { ...closed, title: "Activation" },
);

/**
 * Query parameters that filter a list of companies. `name` matches any part of the company's name, regardless of
 * case.
 */
const companyFilters = {
  ...pageQuery(isRowId),
  name: Type.Optional(displayName),
  is_active: Type.Optional(booleanText),
};
export const partnerQuery = Type.Object({ ...companyFilters, ...updatedSince });
export const accountQuery = Type.Object({
  ...partnerQuery.properties,
  partner_id: Type.Optional(rowId()),
  plan_id: Type.Optional(rowId()),
});
export type AccountQuery = Static<typeof accountQuery>;
/**
 * Query parameters of the list of a partner's own accounts. There is no `partner_id`, because the list contains only
 * accounts of the caller's partner, and no `plan_id`, because only operators list plans.
 */
export const ownAccountQuery = Type.Omit(accountQuery, ["partner_id", "plan_id"]);

const NamedObject = Type.Object({ id: Type.Integer(), name: Type.String() });
export type Named = RowOf<typeof NamedObject>;

/**
 * The id, the type and the name of a company of any type, also of the platform. Dashboard pages that know only the id
 * of a company show the name.
 */
export const CompanyName = Type.Object(
  {
    id: Type.Integer(),
    type: Type.String(),
    name: Type.String(),
  },
  {
    title: "CompanyName",
    examples: [{ id: 7, type: "partner", name: "Stellar Partners" }],
    description: "A company.",
  },
);

const companyFields = {
  id: Type.Integer(),
  name: Type.String(),
  is_active: Type.Boolean(),
  primary_color: Type.String(),
  logo_url: nullableText,
  ...requirement,
  created_at: instantAnswer(),
  ...syncedFields,
};

export const PartnerObject = Type.Object(
  {
    ...companyFields,
    white_label: whiteLabelObject,
  },
  { title: "Partner", examples: [{ id: 7, name: "Stellar Partners" }] },
);
export const AccountObject = Type.Object(
  {
    ...companyFields,
    partner_id: orNull(Type.Integer()),
    partner_name: nullableText,
    plan: NamedObject,
    store_ids: Type.Array(Type.Integer()),
    stores: Type.Array(NamedObject),
  },
  {
    title: "Account",
    examples: [
      {
        id: 12,
        name: "Harbour Café",
        plan: { id: 4, name: "Growth" },
        stores: [{ id: 3, name: "Main Street" }],
      },
    ],
  },
);

/** A partner or an account. Fields that only the other type has are null or empty. */
export type Company = Omit<RowOf<typeof AccountObject>, "plan" | "storeIds"> &
  Pick<typeof companies.$inferSelect, "brandName" | "planId" | "whiteLabelEnabled"> & {
    readonly type: "partner" | "account";
    readonly domain: string | null;
    readonly planName: string | null;
  };

export function showPartner(one: Company): Static<typeof PartnerObject> {
  const { whiteLabelEnabled: enabled, brandName, domain } = one;
  return shown(PartnerObject, { ...one, whiteLabel: { enabled, brandName, domain } });
}

export function showAccount(one: Company): Static<typeof AccountObject> {
  const plan = { id: one.planId ?? 0, name: one.planName ?? "" };
  return shown(AccountObject, { ...one, plan, storeIds: one.stores.map(({ id }) => id) });
}

// ------------------------------------------------------------------------------------------------ users

/** Allowed roles of users, by the type of their company. */
export const ROLES_OF = {
  platform: ["super_admin"],
  partner: ["partner_owner", "partner_admin"],
  account: ["account_owner", "account_user", "location_user"],
} as const satisfies Record<string, readonly Role[]>;
/** Facts about the company of a user that decide which role, stores and password the user may have. */
export interface Employer {
  readonly type: keyof typeof ROLES_OF;
  readonly storeIds: readonly number[];
  /** The names and brand names of the company and its partner. */
  readonly names: readonly (string | null)[];
}

const role = literals(Object.values(ROLES_OF).flat());
export const storeIdList = Type.Array(rowId(), {
  maxItems: MAX_STORES,
  uniqueItems: true,
  title: "StoreIds",
  description: "Ids of the stores that a location user may see.",
});

export const UserBody = Type.Object(
  {
    company_id: rowId(),
    email,
    name: displayName,
    role,
    /** The password; if absent, an invitation is mailed to the user. */
    password: Type.Optional(newPassword),
    /** Ids of the stores of a location user. Required for this role and not allowed for any other role. */
    store_ids: Type.Optional(storeIdList),
    ...withExternalId,
  },
  {
    ...closed,
    title: "UserInput",
    examples: [
      { company_id: 7, email: "owner@partner.example", name: "Zoë O’Neil", role: "partner_owner" },
    ],
  },
);
export type NewUser = Static<typeof UserBody>;

/** The body of a change of a user: any subset of its fields. The company of a user cannot change. */
export const UserChanges = Type.Partial(
  Type.Object({ email, name: displayName, role, store_ids: storeIdList, ...changedExternalId }),
  { ...closed, title: "UserChanges", examples: [{ name: "Zoë O’Neil", role: "partner_owner" }] },
);
export type UserUpdate = Static<typeof UserChanges>;

export const userQuery = Type.Object({
  ...pageQuery(isRowId),
  company_id: Type.Optional(rowId()),
  role: Type.Optional(role),
  email: Type.Optional(storableText([1, EMAIL_CHARS])),
  q: Type.Optional(searchText()),
  is_active: Type.Optional(booleanText),
  ...updatedSince,
});
export type UserQuery = Static<typeof userQuery>;

export const UserObject = Type.Object(
  {
    id: Type.Integer(),
    email: Type.String(),
    name: Type.String(),
    role: Type.String(),
    company_id: Type.Integer(),
    company: CompanyName,
    store_ids: Type.Array(Type.Integer()),
    is_active: Type.Boolean(),
    has_password: Type.Boolean(),
    is_invited: Type.Boolean(),
    locked_until: orNull(instantAnswer()),
    created_at: instantAnswer(),
    ...syncedFields,
  },
  { title: "AdminUser", extends: userObject },
);
/** A user. `lockedUntil` is the end of the last sign-in lock, and may be in the past; null without one. */
export type User = RowOf<typeof UserObject> & {
  readonly role: Role;
  readonly company: Pick<Employer, "type">;
};

const teamRole = literals(ROLES_OF.partner);

/** Body for a new user of the caller's partner. It has no password, because a partner may only invite its users. */
export const TeammateBody = Type.Object(
  { email, name: displayName, role: teamRole },
  {
    ...closed,
    title: "TeammateInput",
    examples: [{ email: "owner@partner.example", name: "Zoë O’Neil", role: "partner_owner" }],
  },
);
export type NewTeammate = Static<typeof TeammateBody>;

export const RoleBody = Type.Object({ role: teamRole }, { ...closed, title: "TeamRole" });

export const teamQuery = Type.Pick(userQuery, ["limit", "cursor", "is_active"]);
