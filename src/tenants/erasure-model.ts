import { type Static, Type } from "@sinclair/typebox";

import type { ValidParts } from "../http/fields.ts";
import { isUlid, pageQuery } from "../http/list.ts";
import { literals } from "../http/principal.ts";
import type { RuleErrors } from "../http/rules.ts";
import type { RowOf } from "../http/shown.ts";
import { instantAnswer, orNull, rowId, storableText } from "../http/text.ts";
import { isMailAddress } from "../lib/email.ts";
import { closed } from "./model.ts";

const EMAIL_CHARS = 254;
const REVIEWS = 1_000;

const count = (description: string) => Type.Integer({ description });

/** The changed and deleted rows of an erasure by their kind. */
const COUNTS = {
  users: count("Users whose name and address were replaced."),
  reviews: count("Reviews that were emptied."),
  events: count("Events whose values were replaced."),
  attempts: count("Attempts whose bodies were removed."),
  mails: count("Waiting mails that are not sent."),
  actions: count("Actions that were removed from the inbox."),
  responses: count("Stored responses that were removed."),
  sign_ins: count("Sign-ins that lost their address and browser."),
  audit_rows: count("Rows of the audit log that lost addresses and texts."),
  recipients: count("Partners whose alerts went to the address."),
};
export type Counts = Partial<Record<keyof typeof COUNTS, number>>;

export const ErasureBody = Type.Object(
  {
    user_id: Type.Optional(rowId()),
    reviewer_email: Type.Optional(
      Object.assign(storableText([1, EMAIL_CHARS]), {
        description: "The address with which sites have reported the reviewer, in any case.",
      }),
    ),
    review_ids: Type.Optional(
      Type.Array(rowId(), {
        minItems: 1,
        maxItems: REVIEWS,
        uniqueItems: true,
        description: "Reviews of the person.",
      }),
    ),
    partner_id: Type.Optional(rowId()),
    account_id: Type.Optional(rowId()),
  },
  {
    ...closed,
    title: "ErasureInput",
    examples: [{ reviewer_email: "ada@mail.example", partner_id: 7 }],
  },
);
export type NewErasure = Static<typeof ErasureBody>;

export const ErasureObject = Type.Object(
  {
    id: Type.String({ description: "ULID." }),
    kind: literals(["user", "reviewer"]),
    state: literals(["queued", "running", "done"]),
    requested_by: orNull(Type.Integer(), { description: "The operator; null for the command." }),
    requested_at: Object.assign(instantAnswer(), { description: "The time of the request." }),
    finished_at: orNull(instantAnswer(), { description: "Null until it is done." }),
    counts: Type.Partial(Type.Object(COUNTS), { description: "Rows so far." }),
  },
  {
    title: "Erasure",
    examples: [{ kind: "reviewer", state: "done", counts: { reviews: 2, events: 7, attempts: 9 } }],
  },
);
export type Erasure = RowOf<typeof ErasureObject>;

export const erasureQuery = Type.Object(pageQuery(isUlid));

/** The person whose data are erased, as the row of the erasure has it, sealed. */
export type Selector =
  | {
      readonly kind: "user";
      readonly userId: number;
      readonly email: string;
      /** The account of a user that can have acted on reviews; null for others. */
      readonly account: { readonly id: number; readonly partnerId: number } | null;
    }
  | {
      readonly kind: "reviewer";
      readonly email: string | null;
      readonly reviewIds: readonly number[];
      readonly partnerId: number | null;
      readonly accountId: number | null;
    };

const ONE_PERSON = "is required, or reviewer_email or review_ids";
const NOT_OF_USER = "is for a reviewer only";

/** Checks that a body names one person; the other rules need the database. */
export function selectorErrors(body: ValidParts<NewErasure>): RuleErrors {
  const { user_id: _, ...ofReviewer } = body;
  if ("user_id" in body)
    return Object.fromEntries(Object.keys(ofReviewer).map((field) => [field, NOT_OF_USER]));
  const { reviewer_email: email } = body;
  const isNamed = "reviewer_email" in body || "review_ids" in body;
  return {
    user_id: isNamed ? undefined : ONE_PERSON,
    reviewer_email:
      email === undefined || isMailAddress(email) ? undefined : "must be one plain email address",
  };
}

export const DeletionBody = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      description: "The name of the company, as a confirmation.",
      explain: "must be the name of the company",
    }),
  },
  { ...closed, title: "DeletionInput", examples: [{ name: "Stellar Partners" }] },
);
export type NewDeletion = Static<typeof DeletionBody>;

export const DeletionObject = Type.Object(
  {
    requested_at: Object.assign(instantAnswer(), { description: "The time of the request." }),
    due_at: Object.assign(instantAnswer(), { description: "From then on everything is deleted." }),
    state: literals(["waiting", "running"]),
  },
  { title: "CompanyDeletion" },
);
export type Deletion = RowOf<typeof DeletionObject>;
