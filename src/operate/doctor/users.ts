// Users whom an earlier version stored and whom this version would refuse.
import { Value } from "@sinclair/typebox/value";

import type { RawDb } from "../../../db/client.ts";
import { ADDRESS_BYTES, isMailAddress, normalEmail } from "../../lib/email.ts";
import { displayName, NAME_CHARS } from "../../tenants/model.ts";
import { advice, type Finding, ok } from "./finding.ts";

interface UserRow {
  readonly id: number;
  readonly email: string;
  readonly name: string;
}

/** The most users that the report names, and that one query reads. */
const LISTED = 20;
const READ = 10_000;

export async function lookAtMailboxes(db: RawDb): Promise<Finding> {
  const sharing = await sharingUsers(db);
  if (sharing.length === 0) return ok("each mailbox has one user");
  return advice(
    `users who share a mailbox in several spellings: ${named(sharing)}`,
    "Each of them signs in by the exact spelling alone, and an import of both is refused. Give one another address, or erase one.",
  );
}

export async function lookAtAddresses(db: RawDb): Promise<Finding> {
  const odd = await oddUsers(db);
  if (odd.length === 0) return ok("every user can be mailed");
  return advice(
    `users whose address cannot be mailed, or whose name is refused today: ${named(odd)}`,
    "They get no mail, and an import refuses them. Give them another address or name with PATCH /admin/users/{id}.",
  );
}

/**
 * Finds the users of whose mailbox there are several, also those whose normal form is not computed yet. All but one of
 * them have an email that differs from the normal form.
 */
async function sharingUsers({ sql }: RawDb): Promise<UserRow[]> {
  const open = await sql<UserRow[]>`
    select id, email, name from users u
     where normal_email is null and octet_length(email) > char_length(email)
        or normal_email <> email and (
             exists (select from users v where v.email = u.normal_email) or
             exists (select from users v where v.normal_email = u.normal_email and v.id <> u.id))
     order by id limit ${READ}`;
  const forms = open.map(({ email }) => normalEmail(email));
  const others = await sql<UserRow[]>`
    select id, email, name from users where email = any(${forms})
    union all select id, email, name from users where normal_email = any(${forms})`;
  const all = [...new Map([...open, ...others].map((row) => [row.id, row])).values()];
  const mailboxes = [...Map.groupBy(all, ({ email }) => normalEmail(email)).values()];
  return mailboxes.filter(({ length }) => length > 1).flat();
}

/** The addresses and names of which a pattern of PostgreSQL is certain; the others are judged here. */
const PLAIN_EMAIL = "^[a-z0-9._+-]{1,64}@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)*[a-z]{1,63}$";
const ODD_NAME =
  "[\\u0001-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]|^[^[:alnum:]]*$|^[\\u115f\\u1160\\u3164\\uffa0\\s]*$";

async function oddUsers({ sql }: RawDb): Promise<UserRow[]> {
  const rows = await sql<UserRow[]>`
    select id, email, name from users
     where role <> 'service'
       and (email !~ ${PLAIN_EMAIL} or email ~ '[@.]xn--' or octet_length(email) > ${ADDRESS_BYTES}
            or name ~ ${ODD_NAME} or char_length(name) > ${NAME_CHARS})
     order by id limit ${READ}`;
  return rows.filter(({ email, name }) => !isMailAddress(email) || !Value.Check(displayName, name));
}

/** Names users without letting their texts rewrite the terminal. */
function named(rows: readonly UserRow[]): string {
  const shown = rows.slice(0, LISTED).map(({ id, email }) => `${id} (${ascii(email)})`);
  const more = rows.length - shown.length;
  return shown.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

const ascii = (text: string) =>
  text.replaceAll(/[^ -~]/gu, (one) => `\\u{${one.codePointAt(0)?.toString(16) ?? ""}}`);
