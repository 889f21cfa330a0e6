// Checks for stored users that this version would reject, and for settings that weaken security.
import { Value } from "@sinclair/typebox/value";
import { statSync } from "node:fs";

import type { RawDb } from "../../../db/client.ts";
import type { Config } from "../../lib/config.ts";
import { type Network, parseNetworks } from "../../lib/egress.ts";
import { ADDRESS_BYTES, isMailAddress, normalEmail } from "../../lib/email.ts";
import type { Env } from "../../lib/settings-reader.ts";
import { displayName, NAME_CHARS } from "../../tenants/model.ts";
import { advice, type Finding, ok, fault } from "./finding.ts";

interface UserRow {
  readonly id: number;
  readonly email: string;
  readonly name: string;
}

/** Maximum number of users that a finding lists. `MAX_READ` is the maximum number of users that one query reads. */
const MAX_LISTED = 20;
const MAX_READ = 10_000;

export async function checkMailboxes(db: RawDb): Promise<Finding> {
  const sharing = await sharingUsers(db);
  if (sharing.length === 0) return ok("each email address belongs to one user");
  return advice(
    `users who share a mailbox in several spellings: ${namesOf(sharing)}`,
    "Each of them can sign in only with the exact spelling, and an import of both is rejected. Give one of them another address, or erase one.",
  );
}

export async function checkAddresses(db: RawDb): Promise<Finding> {
  const odd = await oddUsers(db);
  if (odd.length === 0) return ok("every user has a valid address and name");
  return advice(
    `users with an address or name that is no longer accepted: ${namesOf(odd)}`,
    "They may get no mail, and an import rejects them. Set another address or name with PATCH /admin/users/{id}.",
  );
}

/**
 * Finds users who share a mailbox with another user, including users whose normal form is not computed yet. In a
 * mailbox that several users share, at most one email equals the normal form, so the query starts with the other
 * emails.
 */
async function sharingUsers({ sql }: RawDb): Promise<UserRow[]> {
  const open = await sql<UserRow[]>`
    select id, email, name from users u
     where normal_email is null and octet_length(email) > char_length(email)
        or normal_email <> email and (
             exists (select from users v where v.email = u.normal_email) or
             exists (select from users v where v.normal_email = u.normal_email and v.id <> u.id))
     order by id limit ${MAX_READ}`;
  const forms = open.map(({ email }) => normalEmail(email));
  const others = await sql<UserRow[]>`
    select id, email, name from users where email = any(${forms})
    union all select id, email, name from users where normal_email = any(${forms})`;
  const all = [...new Map([...open, ...others].map((row) => [row.id, row])).values()];
  const mailboxes = [...Map.groupBy(all, ({ email }) => normalEmail(email)).values()];
  return mailboxes.filter(({ length }) => length > 1).flat();
}

/**
 * Patterns of addresses that are certainly valid, and of names that may be invalid. PostgreSQL uses them to select the
 * few users that this process then checks with the rules of the API.
 */
const PLAIN_EMAIL = "^[a-z0-9._+-]{1,64}@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)*[a-z]{1,63}$";
const ODD_NAME =
  "[\\u0001-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]|^[^[:alnum:]]*$|^[\\u115f\\u1160\\u3164\\uffa0\\s]*$";

async function oddUsers({ sql }: RawDb): Promise<UserRow[]> {
  const rows = await sql<UserRow[]>`
    select id, email, name from users
     where role not in ('service', 'partner_integration')
       and (email !~ ${PLAIN_EMAIL} or email ~ '[@.]xn--' or octet_length(email) > ${ADDRESS_BYTES}
            or name ~ ${ODD_NAME} or char_length(name) > ${NAME_CHARS})
     order by id limit ${MAX_READ}`;
  return rows.filter(({ email, name }) => !isMailAddress(email) || !Value.Check(displayName, name));
}

/**
 * Formats a list of users with their ids and emails. Characters other than printable ASCII are escaped, so that an
 * email cannot send control sequences to the terminal.
 */
function namesOf(rows: readonly UserRow[]): string {
  const shown = rows.slice(0, MAX_LISTED).map(({ id, email }) => `${id} (${escapedAscii(email)})`);
  const more = rows.length - shown.length;
  return shown.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

const escapedAscii = (text: string) =>
  text.replaceAll(/[^ -~]/gu, (one) => `\\u{${one.codePointAt(0)?.toString(16) ?? ""}}`);

/** Prefix length of `fc00::/7`, the widest network that an installation can own. A shorter prefix is a fault. */
const WIDEST_BITS = 7;
/** Networks with the addresses of this machine, and with those at which clouds serve metadata and credentials. */
const OWN_NETWORKS = parseNetworks("127.0.0.0/8 ::1/128 169.254.0.0/16 fe80::/10 168.63.129.16");
/**
 * Permission bits that the file of a master key should not have: write for the group, and any permission for others.
 */
const WEAK_MODE = 0o027;

type RiskyConfig = Pick<Config, "egress" | "rateLimits" | "trustedProxies">;

/**
 * Checks settings that affect security. A setting that disables a protection is a fault; a setting that weakens one
 * gives advice.
 */
export function riskySettings(
  { egress, rateLimits, trustedProxies }: RiskyConfig,
  env: Env,
): Finding[] {
  const findings: Finding[] = [];
  if (egress.allowedNetworks.some(isTooWide))
    findings.push(
      fault(
        "WEBHOOK_ALLOWED_NETWORKS allows every address",
        "Set only the networks of your receivers: otherwise a partner can send requests to every machine that this one can reach.",
      ),
    );
  else if (egress.allowedNetworks.some((one) => OWN_NETWORKS.some((own) => overlap(one, own))))
    findings.push(
      advice(
        "WEBHOOK_ALLOWED_NETWORKS allows this machine or a cloud metadata address",
        "Remove these networks unless you test a receiver on this machine: partners can send requests to them.",
      ),
    );
  if (egress.allowHttp)
    findings.push(
      advice(
        "WEBHOOK_ALLOW_HTTP allows receivers without TLS",
        "Remove it: without TLS, others can read and change deliveries.",
      ),
    );
  if (trustedProxies.flatMap(parseNetworks).some(isTooWide))
    findings.push(
      fault(
        "TRUSTED_PROXIES trusts every address",
        "Set only your proxies: otherwise a client can choose the address that rate limits and the audit log use.",
      ),
    );
  if (!rateLimits)
    findings.push(
      advice(
        "RATE_LIMITS is off",
        "Remove it unless a proxy limits the requests: without a limit, passwords can be guessed at any rate.",
      ),
    );
  return [...findings, ...["MASTER_KEY_FILE", "MASTER_KEY_PREVIOUS_FILE"].flatMap(weakModeOf(env))];
}

function isTooWide({ bits }: Network): boolean {
  return bits.length < WIDEST_BITS;
}

function overlap(one: Network, other: Network): boolean {
  if (one.family !== other.family) return false;
  return one.bits.startsWith(other.bits) || other.bits.startsWith(one.bits);
}

function weakModeOf(env: Env): (name: string) => Finding[] {
  return (name) => {
    const path = env[name]?.trim();
    const mode = path ? statSync(path, { throwIfNoEntry: false })?.mode : undefined;
    if (mode === undefined || (mode & WEAK_MODE) === 0) return [];
    const shown = (mode & 0o777).toString(8).padStart(4, "0");
    return [
      advice(
        `the file of ${name} has the mode ${shown}`,
        "Set its mode to 0400 and its owner to the user of the service: the key decrypts every stored secret.",
      ),
    ];
  };
}
