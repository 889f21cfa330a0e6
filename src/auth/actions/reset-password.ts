import type { Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { Passwords } from "../../lib/password.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { isMailAddress, MAIL_WAKE, queueMails } from "../../outbox/mail.ts";
import type { Waker } from "../../outbox/schedule.ts";
import type { Db } from "../../../db/client.ts";
import { emailDigest } from "../email.ts";
import type { KeyRing } from "../key-ring.ts";
import { passwordChangedMail } from "../mails.ts";
import type { Caller } from "../../http/principal.ts";
import type { ResetAnswer } from "../model.ts";
import * as access from "../queries/access.ts";
import { deleteInvitationOf } from "../queries/invitations.ts";
import { forgetLock } from "../queries/locks.ts";
import { holdToken } from "../queries/tokens.ts";
import { changePassword, type PersonRow } from "../queries/users.ts";
import { openOwnSession } from "./open-session.ts";

export interface ResetDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly keys: KeyRing;
  readonly passwords: Passwords;
  readonly schedule: Waker;
  readonly config: Pick<Config, "accessTokenTtlS">;
}

interface Reset extends Caller {
  readonly now: Date;
}

/**
 * `POST /reset-password` stores the new hash, ends every token and code of the user and issues one fresh token, in one
 * transaction (contract 4.15).
 */
export async function resetPassword(
  deps: ResetDeps,
  { principal, call }: Caller,
  password: string,
): Promise<ResetAnswer> {
  const hash = await deps.passwords.hash(password, call.ip);
  const now = deps.clock.now();
  const answer = await deps.db.transaction(async (tx) => {
    // This comes first: whoever issues a token for the user holds the row, so this waits for it, and the token is ended
    // too.
    const person = await changePassword(tx, { userId: principal.userId, hash, now });
    // Of two resets with one token the second one finds it deleted.
    if (person === undefined || !(await holdToken(tx, principal.jti)))
      throw new Problem("unauthenticated");
    await endEverything(tx, person, { principal, call, now });
    return freshSession(tx, deps, person, { principal, call, now });
  });
  await deps.schedule.wake([MAIL_WAKE]);
  return answer;
}

async function endEverything(
  tx: Tx,
  { id, email, companyId }: PersonRow,
  { principal, call, now }: Reset,
): Promise<void> {
  const revoked = await access.deleteTokensOf(tx, [id]);
  await access.consumeCodesOf(tx, [id], now);
  await access.consumeSsoCodesOf(tx, [id], now);
  await access.deleteAuthorizationCodesOf(tx, [id]);
  await deleteInvitationOf(tx, id);
  await forgetLock(tx, emailDigest(email));
  await recordAudit(tx, {
    at: now,
    action: "PASSWORD_RESET",
    actor: { userId: id, companyId, impersonatorId: null },
    call,
    details: { method: principal.tokenKind, revoked },
  });
}

async function freshSession(
  tx: Tx,
  deps: ResetDeps,
  person: PersonRow,
  { call, now }: Reset,
): Promise<ResetAnswer> {
  const signIn = { user: person, method: "password_reset", call, now } as const;
  const { location_count: _, ...answer } = await openOwnSession(tx, deps, signIn);
  const { enabled, brand_name } = answer.white_label;
  if (isMailAddress(person.email))
    await queueMails(
      tx,
      deps,
      [passwordChangedMail(person.email, enabled ? brand_name : null)],
      now,
    );
  return answer;
}
