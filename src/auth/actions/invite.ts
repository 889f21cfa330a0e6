import type { Tx } from "../../../db/client.ts";
import { recordAudit, type AuditActor } from "../../audit/actions.ts";
import type { Call } from "../../http/call.ts";
import { addMs } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { hashSecret, newSecret } from "../../lib/random-secret.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { queueMails } from "../../outbox/mail.ts";
import { invitationMail, singleSignOnMail } from "../mails.ts";
import { saveInvitation } from "../queries/invitations.ts";
import { findMailRecipient } from "../queries/users.ts";

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
  readonly call: Call | null;
  readonly now: Date;
}

/**
 * Makes the user's link in the transaction of the caller, and with it the last one useless. The user must not have a
 * password: the link would not work.
 */
export async function makeInvitation(
  tx: Tx,
  { serverRoot }: Pick<Config, "serverRoot">,
  { userId, email, actor, call, now }: Invited,
): Promise<{ link: string; expiresAt: Date }> {
  const code = newSecret();
  const expiresAt = addMs(now, INVITATION_TTL_MS);
  await saveInvitation(tx, { userId, codeHash: hashSecret(code), createdAt: now, expiresAt });
  const details = { user_id: userId };
  await recordAudit(tx, { at: now, action: "USER_INVITED", actor, call, details });
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
