import { type Static, Type } from "@sinclair/typebox";

import type { ValidParts } from "../http/fields.ts";
import { pageQuery } from "../http/list.ts";
import { isUlid } from "../http/ids.ts";
import { literals } from "../http/principal.ts";
import type { RuleErrors } from "../http/rules.ts";
import { type RowOf, storedJson } from "../http/shown.ts";
import { instantAnswer, orNull, rowId, storableText } from "../http/text.ts";
import { isMailAddress } from "../lib/email.ts";
import { closed, CompanyName } from "./model.ts";

const EMAIL_CHARS = 254;
const MAX_REVIEWS = 1_000;

const countOf = (description: string) => Type.Integer({ description });

/** The schemas of the numbers of rows that an erasure has changed or deleted, by the kind of row. */
const COUNTS = {
  users: countOf("Replaced users."),
  reviews: countOf("Emptied reviews."),
  events: countOf("Events with replaced values."),
  attempts: countOf("Emptied attempts."),
  mails: countOf("Dropped waiting mails."),
  actions: countOf("Dropped actions of the inbox."),
  responses: countOf("Dropped stored responses."),
  sign_ins: countOf("Emptied sign-ins."),
  audit_rows: countOf("Emptied rows of the audit log."),
  recipients: countOf("Partners whose alerts were sent to the address."),
};
export type Counts = Partial<Record<keyof typeof COUNTS, number>>;

export const ErasureBody = Type.Object(
  {
    user_id: Type.Optional(rowId()),
    reviewer_email: Type.Optional(
      Object.assign(storableText([1, EMAIL_CHARS]), {
        description:
          "Email address of the reviewer as reported by sites; upper and lower case are equal.",
      }),
    ),
    review_ids: Type.Optional(
      Type.Array(rowId(), {
        minItems: 1,
        maxItems: MAX_REVIEWS,
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
    requested_by: orNull(Type.Integer(), {
      description: "Id of the operator; null for the command.",
    }),
    requested_at: Object.assign(instantAnswer(), { description: "Time of the request." }),
    finished_at: orNull(instantAnswer(), { description: "Time of completion; null before." }),
    // `storedJson`, because the row has the names of the response.
    counts: Type.Unsafe<Counts>(
      storedJson(
        Type.Partial(Type.Object(COUNTS), { description: "Numbers of processed rows so far." }),
      ),
    ),
  },
  {
    title: "Erasure",
    examples: [{ kind: "reviewer", state: "done", counts: { reviews: 2, events: 7, attempts: 9 } }],
  },
);
export type Erasure = RowOf<typeof ErasureObject>;

export const erasureQuery = Type.Object(pageQuery(isUlid));

/** The person whose data are erased. The row of the erasure stores this value sealed. */
export type Selector =
  | {
      readonly kind: "user";
      readonly userId: number;
      readonly email: string;
      /**
       * The account of the user, with its partner; null for a user of a partner or of the platform, because only users
       * of accounts act on reviews.
       */
      readonly account: { readonly id: number; readonly partnerId: number } | null;
    }
  | {
      readonly kind: "reviewer";
      readonly email: string | null;
      readonly reviewIds: readonly number[];
      readonly partnerId: number | null;
      readonly accountId: number | null;
    };

const ONE_PERSON_ERROR = "is required unless reviewer_email or review_ids is sent";
const NOT_OF_USER_ERROR = "is only allowed for a reviewer";

/** Validates that a body names one person. `erasureErrors` checks the rules that need the database. */
export function selectorErrors(body: ValidParts<NewErasure>): RuleErrors {
  const { user_id: _, ...ofReviewer } = body;
  if ("user_id" in body)
    return Object.fromEntries(Object.keys(ofReviewer).map((field) => [field, NOT_OF_USER_ERROR]));
  const { reviewer_email: email } = body;
  const isNamed = "reviewer_email" in body || "review_ids" in body;
  return {
    user_id: isNamed ? undefined : ONE_PERSON_ERROR,
    reviewer_email:
      email === undefined || isMailAddress(email)
        ? undefined
        : "must be a single email address without a display name",
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
    requested_at: Object.assign(instantAnswer(), { description: "Time of the request." }),
    due_at: Object.assign(instantAnswer(), { description: "Time at which the deletion begins." }),
    state: literals(["waiting", "running"]),
  },
  { title: "CompanyDeletion" },
);
export type Deletion = RowOf<typeof DeletionObject>;

/** A scheduled deletion in the list of all companies. */
export const ListedDeletionObject = Type.Object(
  { company: CompanyName, ...DeletionObject.properties },
  { title: "ListedDeletion", extends: DeletionObject },
);
type ListedDeletion = RowOf<typeof ListedDeletionObject>;

/** Returns the sort key of a deletion: when it is due, and its company. */
export const deletionKeyOf = ({ dueAt, company }: ListedDeletion): string =>
  `${dueAt.getTime()}.${company.id}`;

export const deletionQuery = Type.Object(pageQuery((key) => /^\d{1,15}\.[1-9]\d{0,9}$/.test(key)));
