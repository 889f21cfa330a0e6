import type { Tx } from "../../../db/client.ts";
import { type AuditActor, recordAudit } from "../../audit/queries.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { addMs } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { Problem } from "../../lib/problem.ts";
import { hashSecret, newSecret } from "../../lib/secrets.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { queueMails } from "../../outbox/mail.ts";
import { invitationMail } from "./mails.ts";
import type { ResetAnswer } from "../model.ts";
import { readContext } from "../sign-in/open-session.ts";
import type { AcceptBody, ShownInvitation } from "./model.ts";
import {
  changePassword,
  consumeInvitation,
  findInvited,
  findInviter,
  findMailRecipient,
  saveInvitation,
} from "../user-queries.ts";
import { countMailTo } from "./mail-limits.ts";
import { checkContext, freshSession, type ResetDeps } from "./passwords.ts";
import { signedInOr } from "../factors/second-step.ts";

/** Time in ms for which an invitation link is valid (contract 4.22). */
const INVITATION_TTL_MS = 7 * 86_400_000;

/**
 * The dashboard page that accepts an invitation. The code is in the URL fragment, which browsers do not send, so no
 * server and no log sees it.
 */
const WELCOME_PAGE = "/dashboard/welcome";

interface InvitedUser {
  readonly userId: number;
  /** The invited address: normalised, and without a display name. */
  readonly email: string;
  /** The user who invites; null if an operator invites with a command line tool. */
  readonly actor: AuditActor | null;
  readonly requestContext: RequestContext | null;
  readonly now: Date;
}

/** Matches the id of the inviter at the end of a code. */
const INVITER = /\.(\d+)$/;

/**
 * Creates the user's invitation link in the caller's transaction. An earlier link of the user stops working. The link
 * works only while the user has no password. The code ends with the id of the inviter, if there is one to name. Its
 * stored hash covers the id, so nobody can put another inviter into a link.
 */
export async function makeInvitation(
  tx: Tx,
  { serverRoot }: Pick<Config, "serverRoot">,
  one: InvitedUser & { readonly inviterId?: number | undefined },
): Promise<{ link: string; expiresAt: Date }> {
  const { userId, email, actor, requestContext, now, inviterId } = one;
  const code = inviterId === undefined ? newSecret() : `${newSecret()}.${inviterId}`;
  const expiresAt = addMs(now, INVITATION_TTL_MS);
  await saveInvitation(tx, { userId, codeHash: hashSecret(code), createdAt: now, expiresAt });
  const details = { user_id: userId };
  await recordAudit(tx, { at: now, action: "USER_INVITED", actor, requestContext, details });
  const fragment = new URLSearchParams({ invitation: code, email });
  return { link: `${serverRoot}${WELCOME_PAGE}#${fragment.toString()}`, expiresAt };
}

/**
 * Mails the user instructions for the first sign-in: a link that sets a password or, if the company's domain allows no
 * passwords, a link to sign in through its identity provider. The caller wakes the mailer after the commit. Throws
 * `rate_limited` if the limit of mails to the address is reached. Returns false, and does nothing, while the user or
 * the company is not active, because the link would not work.
 */
export async function inviteUser(
  tx: Tx,
  deps: { readonly box: SecretBox; readonly config: Pick<Config, "serverRoot"> },
  invited: InvitedUser,
): Promise<boolean> {
  const { email: to, actor, now } = invited;
  const recipient = await findMailRecipient(tx, to);
  if (recipient === undefined) return false;
  await countMailTo(tx, to, now);
  // An operator who acts as a customer is not named, because the mail would name the customer in the operator's place.
  const isNamed = actor !== null && actor.impersonatorId === null;
  const inviter = isNamed ? await findInviter(tx, actor.userId) : undefined;
  const inviterId = inviter && actor?.userId;
  const link = recipient.takesPassword
    ? await makeInvitation(tx, deps.config, { ...invited, inviterId })
    : { link: `${deps.config.serverRoot}/dashboard` };
  await queueMails(tx, deps, [invitationMail({ to, inviter, ...link }, recipient)], now);
  return true;
}

/**
 * Handles `POST /auth/invitation/preview`, which shows an invitation to the holder of its code and leaves it open. Every
 * invalid code gives the same 400 as its use.
 */
export async function previewInvitation(
  { db, clock }: Pick<ResetDeps, "db" | "clock">,
  code: string,
): Promise<ShownInvitation> {
  const userId = await findInvited(db, hashSecret(code), clock.now());
  if (userId === undefined) throw new Problem("invalid_code");
  const { company, theme, white_label, user } = (await readContext(db, userId)).context;
  const inviterId = Number(INVITER.exec(code)?.[1]);
  const inviter = inviterId > 0 ? await findInviter(db, inviterId) : undefined;
  return { role: user.role, company, invited_by: inviter?.name ?? null, theme, white_label };
}

/**
 * Handles `POST /auth/invitation`: sets the first password and signs the user in. Every invalid invitation code gives
 * the same 400.
 */
export async function acceptInvitation(
  deps: Omit<ResetDeps, "schedule" | "box">,
  { code, password }: AcceptBody,
  requestContext: RequestContext,
): Promise<ResetAnswer> {
  const codeHash = hashSecret(code);
  // The code is checked before the password is hashed, so that only the holder of an invitation can make the server
  // spend CPU on a password hash.
  const userId = await findInvited(deps.db, codeHash, deps.clock.now());
  if (userId === undefined) throw new Problem("invalid_code");
  await checkContext(deps.db, userId, password);
  const hash = await deps.passwords.hash(password);
  const now = deps.clock.now();
  const answer = await deps.db.transaction(async (tx) => {
    // `changePassword` locks the user's row until the commit. If a password reset runs at the same time, the later of
    // the two transactions no longer finds the invitation.
    const person = await changePassword(tx, { userId, hash, now });
    if (person === undefined || !(await consumeInvitation(tx, codeHash, now)))
      throw new Problem("invalid_code");
    const actor = { userId, companyId: person.companyId, impersonatorId: null };
    const details = { method: "invitation", revoked: 0 };
    await recordAudit(tx, { at: now, action: "PASSWORD_RESET", actor, requestContext, details });
    return freshSession(tx, deps, person, { requestContext, now });
  });
  return signedInOr(answer);
}
