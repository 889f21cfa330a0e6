import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../auth/actions/audit.ts";
import { endAccess, liftLock } from "../../auth/actions/sessions.ts";
import { inviteUser } from "../../auth/actions/invitations.ts";
import { normaliseEmail } from "../../auth/email.ts";
import type { ValidParts } from "../../http/fields.ts";
import type { RuleErrors } from "../../http/rules.ts";
import type { Found, Page } from "../../http/list.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import { MAIL_WAKE } from "../../outbox/mail.ts";
import { EMAIL_TAKEN, userErrors } from "../input.ts";
import type { NewUser, ROLES_OF, User, UserQuery } from "../model.ts";
import * as queries from "../queries/users.ts";
import { findRow, written, type AdminDeps } from "./deps.ts";

export function listUsers(
  { db }: { readonly db: Db },
  query: UserQuery,
  page: Page,
): Promise<Found<User>> {
  const { email } = query;
  const filter = email === undefined ? query : { ...query, email: normaliseEmail(email) };
  return queries.usersOf(db, filter, page);
}

export function findUser({ db }: { readonly db: Db }, id: string | undefined): Promise<User> {
  return findRow(id, (rowId) => queries.userById(db, rowId));
}

/** What is wrong with the fields of a new user, by the rows as they are now. */
export async function newUserErrors(
  { db }: { readonly db: Db },
  body: ValidParts<NewUser>,
): Promise<RuleErrors> {
  const { company_id: companyId } = body;
  const email = body.email && normaliseEmail(body.email);
  const [employer, isTaken] = await Promise.all([
    companyId === undefined ? undefined : queries.employerOf(db, companyId),
    email === undefined ? false : queries.hasEmail(db, email),
  ]);
  return userErrors({ ...body, email }, { employer, isTaken });
}

/**
 * Mails an invitation to a user who is given no password. `body` has passed `newUserErrors`; an email that was taken
 * since then is a 422.
 */
export async function createUser(
  deps: AdminDeps,
  { principal, requestContext }: Caller,
  body: NewUser,
): Promise<User> {
  const { company_id: companyId, name, role, password, store_ids: storeIds = [] } = body;
  const email = normaliseEmail(body.email);
  const passwordHash =
    password === undefined ? null : await deps.passwords.hash(password, requestContext.ip);
  const now = deps.clock.now();
  try {
    const user = await deps.db.transaction(async (tx) => {
      const row = { companyId, email, name, role, passwordHash, storeIds, createdAt: now };
      const id = await queries.insertUser(tx, row);
      const details = { user_id: id, company_id: companyId, role };
      await recordAudit(tx, {
        at: now,
        action: "USER_CREATED",
        actor: principal,
        requestContext,
        details,
      });
      if (passwordHash === null)
        await inviteUser(tx, deps, { userId: id, email, actor: principal, requestContext, now });
      return written(await queries.userById(tx, id));
    });
    if (passwordHash === null) await deps.schedule.wake([MAIL_WAKE]);
    return user;
  } catch (error) {
    if (!queries.isEmailTaken(error)) throw error;
    throw invalid({ email: [EMAIL_TAKEN] });
  }
}

/** Mails another invitation; the last one works no more. Throws `not_invitable` where it would not work. */
export async function inviteAgain(
  deps: Pick<AdminDeps, "db" | "clock" | "box" | "schedule" | "config">,
  { principal, requestContext }: Caller,
  { id, email, hasPassword, isActive }: User,
): Promise<User> {
  if (hasPassword || !isActive) throw new Problem("not_invitable");
  const now = deps.clock.now();
  const user = await deps.db.transaction(async (tx) => {
    await inviteUser(tx, deps, { userId: id, email, actor: principal, requestContext, now });
    return written(await queries.userById(tx, id));
  });
  await deps.schedule.wake([MAIL_WAKE]);
  return user;
}

/**
 * Throws where nobody would be left who could bring the user back: `last_super_admin` for the last active one, and
 * `last_owner` for the last active owner of a partner, unless an operator does it.
 */
async function refuseLast(tx: Tx, { companyType }: Principal, { id, role, companyId }: User) {
  const isLast = async () => {
    const active = await queries.holdActive(tx, { role, companyId });
    return active.length === 1 && active.includes(id);
  };
  if (role === "super_admin" && (await isLast())) throw new Problem("last_super_admin");
  if (role === "partner_owner" && companyType === "partner" && (await isLast()))
    throw new Problem("last_owner");
}

/** Gives a user of a partner the other role. Tokens stay: a role is read anew with each request. */
export async function setUserRole(
  { db, clock }: Pick<AdminDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  user: User,
  role: (typeof ROLES_OF.partner)[number],
): Promise<User> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    if (role !== user.role) await refuseLast(tx, principal, user);
    if (await queries.setUserRole(tx, user.id, { role, now })) {
      const details = { user_id: user.id, from: user.role, to: role };
      const action = "USER_ROLE_CHANGED";
      await recordAudit(tx, { at: now, action, actor: principal, requestContext, details });
    }
    return written(await queries.userById(tx, user.id));
  });
}

/** Also deletes every token of the user (contract 10.1). Throws `last_super_admin` or `last_owner` for the last one. */
export async function deactivateUser(
  { db, clock }: Pick<AdminDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  user: User,
): Promise<User> {
  const now = clock.now();
  const { id } = user;
  return db.transaction(async (tx) => {
    await refuseLast(tx, principal, user);
    if (await queries.setUserActive(tx, id, false, now)) {
      const details = { user_id: id, revoked: await endAccess(tx, [id], now) };
      const action = "USER_DEACTIVATED";
      await recordAudit(tx, { at: now, action, actor: principal, requestContext, details });
    }
    return written(await queries.userById(tx, id));
  });
}

export async function activateUser(
  { db, clock }: Pick<AdminDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  { id }: User,
): Promise<User> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    if (await queries.setUserActive(tx, id, true, now)) {
      const details = { user_id: id };
      await recordAudit(tx, {
        at: now,
        action: "USER_ACTIVATED",
        actor: principal,
        requestContext,
        details,
      });
    }
    return written(await queries.userById(tx, id));
  });
}

/** Lifts the sign-in lock (contract 4.8) before its time. */
export async function unlockUser(
  { db, clock }: Pick<AdminDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  { id, email }: User,
): Promise<User> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    await liftLock(tx, email);
    const details = { user_id: id };
    await recordAudit(tx, {
      at: now,
      action: "USER_UNLOCKED",
      actor: principal,
      requestContext,
      details,
    });
    return written(await queries.userById(tx, id));
  });
}
