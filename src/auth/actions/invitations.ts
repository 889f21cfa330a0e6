import type { Tx } from "../../../db/client.ts";
import { type AuditActor, recordAudit } from "./audit.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { addMs } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { Problem } from "../../lib/problem.ts";
import { hashSecret, newSecret } from "../../lib/secrets.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { queueMails } from "../../outbox/mail.ts";
import { invitationMail, singleSignOnMail } from "../mails.ts";
import type { ResetAnswer } from "../model.ts";
import type { AcceptBody } from "../password-model.ts";
import {
  changePassword,
  consumeInvitation,
  findInvited,
  findMailRecipient,
  saveInvitation,
} from "../queries/users.ts";
import { openOwnSession } from "./open-session.ts";
import type { ResetDeps } from "./passwords.ts";

/** Contract 4.22: how long the link works. */
const INVITATION_TTL_MS = 7 * 86_400_000;

/** Where the dashboard takes an invitation; the code stands in the fragment, which no server and no log sees. */
const PAGE = "/dashboard/welcome";

interface Invited {
  readonly userId: number;
  /** Normalised, and one plain address. */
  readonly email: string;
  /** Null where a command line invites. */
  readonly actor: AuditActor | null;
  readonly requestContext: RequestContext | null;
  readonly now: Date;
}

/**
 * Makes the user's link in the transaction of the caller, and with it the last one useless. The user must not have a
 * password: the link would not work.
 */
export async function makeInvitation(
  tx: Tx,
  { serverRoot }: Pick<Config, "serverRoot">,
  { userId, email, actor, requestContext, now }: Invited,
): Promise<{ link: string; expiresAt: Date }> {
  const code = newSecret();
  const expiresAt = addMs(now, INVITATION_TTL_MS);
  await saveInvitation(tx, { userId, codeHash: hashSecret(code), createdAt: now, expiresAt });
  const details = { user_id: userId };
  await recordAudit(tx, { at: now, action: "USER_INVITED", actor, requestContext, details });
  const fragment = new URLSearchParams({ invitation: code, email });
  return { link: `${serverRoot}${PAGE}#${fragment.toString()}`, expiresAt };
}

/**
 * Mails the user how to sign in for the first time: by a link that sets a password or, where the company's domain takes
 * none, through its identity provider. Wake `MAIL_WAKE` after the commit.
 */
export async function inviteUser(
  tx: Tx,
  deps: { readonly box: SecretBox; readonly config: Pick<Config, "serverRoot"> },
  invited: Invited,
): Promise<void> {
  const { email: to, now } = invited;
  const recipient = await findMailRecipient(tx, to);
  // Nobody could follow the link; the operator invites again when user and company are active.
  if (recipient === undefined) return;
  if (!recipient.takesPassword) {
    const link = `${deps.config.serverRoot}/dashboard`;
    await queueMails(tx, deps, [singleSignOnMail({ to, link }, recipient.brand)], now);
    return;
  }
  const made = await makeInvitation(tx, deps.config, invited);
  await queueMails(tx, deps, [invitationMail({ to, ...made }, recipient.brand)], now);
}

/** `POST /auth/invitation`: sets the first password and signs in. Every failure of the code is the same 400. */
export async function acceptInvitation(
  deps: Omit<ResetDeps, "schedule" | "box">,
  { code, password }: AcceptBody,
  requestContext: RequestContext,
): Promise<ResetAnswer> {
  const codeHash = hashSecret(code);
  // This comes first, so that nobody without an invitation has a password hashed.
  const userId = await findInvited(deps.db, codeHash, deps.clock.now());
  if (userId === undefined) throw new Problem("invalid_code");
  const hash = await deps.passwords.hash(password);
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    // The row of the user is held from here on: of a reset and this one the second finds the invitation gone.
    const person = await changePassword(tx, { userId, hash, now });
    if (person === undefined || !(await consumeInvitation(tx, codeHash, now)))
      throw new Problem("invalid_code");
    const actor = { userId, companyId: person.companyId, impersonatorId: null };
    const details = { method: "invitation", revoked: 0 };
    await recordAudit(tx, { at: now, action: "PASSWORD_RESET", actor, requestContext, details });
    const signIn = { user: person, method: "password_reset", requestContext, now } as const;
    const { location_count: _, ...answer } = await openOwnSession(tx, deps, signIn);
    return answer;
  });
}
