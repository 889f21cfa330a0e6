import type { Tx } from "../../../db/client.ts";
import { mailAboutAddress, mailAboutOwner } from "../../auth/sign-in/security-mails.ts";
import { recordAccessDenied } from "../../auth/access/access-denied.ts";
import { changedFields, changesOf } from "../../audit/changes.ts";
import { recordAudit } from "../../audit/queries.ts";
import { inviteUser } from "../../auth/passwords/invitations.ts";
import { countInvitationOf } from "../../auth/passwords/mail-limits.ts";
import { endAccess } from "../../auth/sign-in/sessions.ts";
import { authorityInPerson, excessOf } from "../../auth/access/authority.ts";
import { afterCreating } from "../../auth/keyed-requests.ts";
import { isEmailTaken } from "../../auth/passwords/email-queries.ts";
import { spellingOf } from "../../lib/email.ts";
import type { ValidParts } from "../../http/fields.ts";
import { type Found, type Page } from "../../http/list.ts";
import { findRow } from "../../http/ids.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import type { RuleErrors } from "../../http/rules.ts";
import { Problem } from "../../lib/problem.ts";
import type { NewTeammate, NewUser, ROLES_OF, User, UserQuery, UserUpdate } from "../model.ts";
import * as queries from "../queries/users.ts";
import { EMAIL_TAKEN, userErrors } from "../user-rules.ts";
import { existing, orNotFound, type AdminDeps } from "./deps.ts";
import { holdChangeable, refuseLast } from "./last-owner.ts";
import { changeRecord, deleteRecord } from "./records.ts";

type ReadingDeps = Pick<AdminDeps, "db">;

export function listUsers({ db }: ReadingDeps, query: UserQuery, page: Page): Promise<Found<User>> {
  return queries.usersOf(db, query, page);
}

export function findUser({ db }: ReadingDeps, id: string | undefined): Promise<User> {
  return findRow(id, (rowId) => queries.userById(db, rowId));
}

/** Validates the fields of a new user against the database, before `createUser` writes anything. */
export async function newUserErrors(
  { db }: ReadingDeps,
  body: ValidParts<NewUser>,
): Promise<RuleErrors> {
  const { company_id: companyId } = body;
  const email = body.email && spellingOf(body.email);
  const [employer, isTaken] = await Promise.all([
    companyId === undefined ? undefined : queries.employerOf(db, companyId),
    email === undefined ? false : isEmailTaken(db, email),
  ]);
  return userErrors({ ...body, email }, { employer, isTaken });
}

/** Validates the role and the stores of a new user of the company. */
export async function placementErrors(
  { db }: ReadingDeps,
  companyId: number,
  body: ValidParts<Pick<NewUser, "role" | "store_ids">>,
): Promise<RuleErrors> {
  const employer = await queries.employerOf(db, companyId);
  return userErrors({ company_id: companyId, ...body }, { employer, isTaken: false });
}

/** Creates a user, and mails an invitation if the body has no password. The body must have passed `newUserErrors`. */
export async function createUser(
  deps: AdminDeps,
  { principal, requestContext }: Caller,
  body: NewUser,
): Promise<User> {
  const { company_id: companyId, name, role, password, store_ids: storeIds = [] } = body;
  const email = spellingOf(body.email);
  const passwordHash =
    password === undefined ? null : await deps.passwords.hash(password, requestContext.ip);
  const user = await changeRecord(
    deps,
    { principal, requestContext },
    CONFLICTS,
    async (tx, now) => {
      const externalId = body.external_id ?? null;
      const who = { companyId, email, name, role, externalId };
      const id = await queries.insertUser(tx, { ...who, passwordHash, storeIds, createdAt: now });
      // The audit row of the new user is written before the invitation is created, so that it precedes the audit row of
      // the invitation.
      const details = { user_id: id, company_id: companyId, role };
      const audit = { at: now, actor: principal, requestContext };
      await recordAudit(tx, { ...audit, action: "USER_CREATED", details });
      await mailAboutOwner(tx, deps, {
        owner: { id, name, companyId },
        role,
        actor: principal,
        now,
      });
      if (passwordHash === null) {
        await limitInvitations(tx, principal, { id, companyId, now });
        await inviteUser(tx, deps, { userId: id, email, actor: principal, requestContext, now });
      }
      return { result: existing(await queries.userById(tx, id)) };
    },
  );
  const wake = () => deps.schedule.wakeMailer();
  if (passwordHash === null) afterCreating({ requestContext }, wake);
  return user;
}

const EMAIL_ERROR = ["email", EMAIL_TAKEN] as const;
const CONFLICTS = { users_email_key: EMAIL_ERROR, users_normal_email_key: EMAIL_ERROR } as const;

/** Validates the changed fields of a user together with the role and the stores that do not change. */
export async function userUpdateErrors(
  { db }: ReadingDeps,
  user: User,
  body: ValidParts<UserUpdate>,
): Promise<RuleErrors> {
  const email = body.email && spellingOf(body.email);
  const [employer, isTaken] = await Promise.all([
    queries.employerOf(db, user.companyId),
    // An unchanged email is not checked, because another user may already share its mailbox.
    email === undefined || email === user.email ? false : isEmailTaken(db, email, user.id),
  ]);
  const isPerson = user.role !== "service" && user.role !== "partner_integration";
  const role = body.role ?? (isPerson ? user.role : undefined);
  // A change to another role removes the stores of a location user.
  const kept = role === user.role ? user.storeIds : [];
  const store_ids = "store_ids" in body ? body.store_ids : kept;
  const whole = { company_id: user.companyId, role, store_ids, ...(email && { email }) };
  return userErrors(whole, { employer, isTaken });
}

/**
 * The fields of a user whose old and new values the audit log contains. Values of the other fields are left out,
 * because they are personal, and an erasure of the user would not find them in the audit log.
 */
const NOT_PERSONAL_FIELDS = ["role", "store_ids"];

/**
 * Changes a user with a body that has passed `userUpdateErrors`. Absent fields stay. Tokens stay valid after a
 * change of role or stores, because each request reads both again. A change of the email address ends all access,
 * including codes that were mailed to the old address. It is mailed to the old address, or as an open invitation to the
 * new one.
 */
export async function changeUser(
  deps: Pick<AdminDeps, "db" | "clock" | "box" | "config" | "schedule">,
  caller: Caller,
  user: User,
  body: UserUpdate,
): Promise<User> {
  const { id, companyId } = user;
  const { name, role, external_id: externalId } = body;
  const email = body.email === undefined ? undefined : spellingOf(body.email);
  const isOtherRole = role !== undefined && role !== user.role;
  const storeIds = body.store_ids ?? (isOtherRole ? [] : undefined);
  const isMoved = email !== undefined && email !== user.email;
  const changed = await changeRecord(deps, caller, CONFLICTS, async (tx, now) => {
    const named = Object.keys(body);
    if (named.length === 0) return { result: user };
    if (isOtherRole) await refuseLast(tx, caller.principal, user);
    await holdChangeable(tx, id);
    const before = orNotFound(await queries.userById(tx, id));
    const changes = { name, role, email, externalId, updatedAt: now };
    const isInvited = isMoved && (await queries.dropInvitation(tx, id));
    if (isMoved && !isInvited)
      await mailAboutAddress(tx, deps, { userId: id, actor: caller.principal, now });
    await queries.updateUser(tx, id, changes, storeIds);
    if (isOtherRole)
      await mailAboutOwner(tx, deps, { owner: user, role, actor: caller.principal, now });
    if (isMoved) {
      await endAccess(tx, [id], now);
      const { principal: actor, requestContext } = caller;
      if (isInvited) await inviteUser(tx, deps, { userId: id, email, actor, requestContext, now });
    }
    const result = orNotFound(await queries.userById(tx, id));
    const ids = { user_id: id, company_id: companyId };
    const fields = changedFields(named, before, result);
    const details = { ...ids, fields, changes: changesOf(NOT_PERSONAL_FIELDS, before, result) };
    return { result, change: { action: "USER_UPDATED", details } };
  });
  if (isMoved) deps.schedule.wakeMailer();
  return changed;
}

/**
 * Deletes a user. Throws `in_use` if other tables refer to the user, such as the audit log. Such a user can only be
 * deactivated or erased.
 */
export function deleteUser(
  deps: Pick<AdminDeps, "db" | "clock">,
  caller: Caller,
  user: User,
): Promise<void> {
  const { id, companyId } = user;
  const details = { user_id: id, company_id: companyId };
  return deleteRecord(deps, caller, { action: "USER_DELETED", details }, async (tx) => {
    await refuseLast(tx, caller.principal, user);
    await queries.deleteUser(tx, id);
  });
}

/**
 * Mails the user a new invitation, which invalidates the previous one. Throws `not_invitable` for an inactive user and
 * for a user with a password. Throws `company_inactive` for a user of a suspended company, because the link in the mail
 * would not work.
 */
export async function inviteAgain(
  deps: Pick<AdminDeps, "db" | "clock" | "box" | "schedule" | "config">,
  { principal, requestContext }: Caller,
  { id, companyId, email, hasPassword, isActive }: User,
): Promise<User> {
  if (hasPassword || !isActive) throw new Problem("not_invitable");
  const now = deps.clock.now();
  const user = await deps.db.transaction(async (tx) => {
    await holdChangeable(tx, id);
    await limitInvitations(tx, principal, { id, companyId, now });
    const invited = { userId: id, email, actor: principal, requestContext, now };
    if (!(await inviteUser(tx, deps, invited))) throw new Problem("company_inactive");
    return existing(await queries.userById(tx, id));
  });
  deps.schedule.wakeMailer();
  return user;
}

/**
 * Enforces the limits of invitations by a partner. Invitations by operators are not limited, because operators create
 * the users of whole companies.
 */
async function limitInvitations(
  tx: Tx,
  { companyType }: Principal,
  { id: userId, companyId: partnerId, now }: { id: number; companyId: number; now: Date },
): Promise<void> {
  if (companyType === "partner") await countInvitationOf(tx, { partnerId, userId, now });
}

/** Changes the role of a partner's user. The user's tokens stay valid, because each request reads the role again. */
export async function setUserRole(
  deps: Pick<AdminDeps, "db" | "clock" | "box" | "config">,
  { principal, requestContext }: Caller,
  user: User,
  role: (typeof ROLES_OF.partner)[number],
): Promise<User> {
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    if (role !== user.role) await refuseLast(tx, principal, user);
    await holdChangeable(tx, user.id);
    if (await queries.setUserRole(tx, user.id, { role, now })) {
      const details = { user_id: user.id, from: user.role, to: role };
      const action = "USER_ROLE_CHANGED";
      await recordAudit(tx, { at: now, action, actor: principal, requestContext, details });
      await mailAboutOwner(tx, deps, { owner: user, role, actor: principal, now });
    }
    return existing(await queries.userById(tx, user.id));
  });
}

/**
 * Deactivates a user and deletes all tokens of the user (contract 10.1). Throws `last_super_admin` or `last_owner` if
 * no other user with that role can sign in.
 */
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
    return existing(await queries.userById(tx, id));
  });
}

export async function activateUser(
  { db, clock }: Pick<AdminDeps, "db" | "clock">,
  { principal: actor, requestContext }: Caller,
  { id }: User,
): Promise<User> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    await holdChangeable(tx, id);
    if (await queries.setUserActive(tx, id, true, now)) {
      const details = { user_id: id };
      const action = "USER_ACTIVATED";
      await recordAudit(tx, { at: now, action, actor, requestContext, details });
    }
    return existing(await queries.userById(tx, id));
  });
}

/**
 * Returns the id of the caller's partner. Routes that call it must have an access rule that admits only users of a
 * partner; it throws `forbidden` for others.
 */
export function partnerOf({ partnerId }: Pick<Principal, "partnerId">): number {
  if (partnerId === null) throw new Problem("forbidden");
  return partnerId;
}

export function listTeam(
  deps: ReadingDeps,
  principal: Principal,
  { is_active }: { readonly is_active?: "true" | "false" },
  page: Page,
): Promise<Found<User>> {
  const filter = { company_id: partnerOf(principal), ...(is_active && { is_active }) };
  return listUsers(deps, filter, page);
}

/**
 * Finds a user of the caller's partner. For any other user, even a user of the partner's accounts, it writes an
 * AUTHZ_DENIED row into the audit log and throws `forbidden`, because a partner manages only its own users (contract
 * 3.9 and 10.5).
 */
export async function findTeammate(
  deps: Pick<AdminDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  id: string | undefined,
): Promise<User> {
  const user = await findUser(deps, id);
  const authority = { ...authorityInPerson(principal), partnerId: user.companyId };
  const isOfTeam = user.company.type === "partner" && excessOf(principal, authority) === undefined;
  if (isOfTeam) return user;
  const details = { user_id: user.id, reason: "foreign_record" };
  await recordAccessDenied(deps, principal, { requestContext, details });
  throw new Problem("forbidden");
}

type Teammate = ValidParts<NewTeammate>;

export function newTeammateErrors(deps: ReadingDeps, principal: Principal, body: Teammate) {
  return newUserErrors(deps, { ...body, company_id: partnerOf(principal) });
}
