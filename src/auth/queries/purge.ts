import type { DbOrTx, Tx } from "../../../db/client.ts";

/** True for one process at a time, until the transaction ends. */
export async function tryPurgeTurn(tx: Tx): Promise<boolean> {
  const [row] = await tx.sql<{ mine: boolean }[]>`
    select pg_try_advisory_xact_lock(hashtext('reviewrelay:auth-purge')) as mine`;
  return row?.mine ?? false;
}

/** Every deletion passes by rows that somebody works on: they are left for the next time. */
export async function deleteExpiredTokens(
  tx: DbOrTx,
  before: Date,
  limit: number,
): Promise<number> {
  const result = await tx.sql`
    delete from tokens where jti in (
      select jti from tokens where expires_at <= ${before} order by expires_at limit ${limit}
      for update skip locked)`;
  return result.count;
}

/** Codes that are over, used or not, and hold back no other one any more. */
export async function deleteDeadCodes(
  tx: DbOrTx,
  { expiredBefore, issuedBefore }: { expiredBefore: Date; issuedBefore: Date },
  limit: number,
): Promise<number> {
  const result = await tx.sql`
    delete from email_codes where (email_digest, type) in (
      select email_digest, type from email_codes
      where expires_at <= ${expiredBefore} and issued_at <= ${issuedBefore}
      order by expires_at limit ${limit} for update skip locked)`;
  return result.count;
}

/** What is left of sign-ins at the authorize page; used codes stay longer, so that a replay is recognised. */
export async function deleteDeadAuthorizationCodes(
  tx: DbOrTx,
  { expiredBefore, redeemedBefore }: { expiredBefore: Date; redeemedBefore: Date },
  limit: number,
): Promise<number> {
  const result = await tx.sql`
    delete from authorization_codes where secret_hash in (
      select secret_hash from authorization_codes
      where expires_at <= ${expiredBefore} and (state <> 'redeemed' or redeemed_at <= ${redeemedBefore})
      order by expires_at limit ${limit} for update skip locked)`;
  return result.count;
}

export async function deleteOldCodeLimits(
  tx: DbOrTx,
  before: Date,
  limit: number,
): Promise<number> {
  const result = await tx.sql`
    delete from email_code_limits where email_digest in (
      select email_digest from email_code_limits where touched_at <= ${before}
      order by touched_at limit ${limit} for update skip locked)`;
  return result.count;
}

/** What `decideWrongAttempt` would forget. */
export async function deleteForgottenLocks(
  tx: DbOrTx,
  { failedBefore, now }: { failedBefore: Date; now: Date },
  limit: number,
): Promise<number> {
  const result = await tx.sql`
    delete from sign_in_locks where email_digest in (
      select email_digest from sign_in_locks
      where last_failure_at <= ${failedBefore} and (locked_until is null or locked_until <= ${now})
      order by last_failure_at limit ${limit} for update skip locked)`;
  return result.count;
}

/** Retired keys that no token needs; a token that is being written holds its key. */
export async function deleteIdleKeys(
  tx: DbOrTx,
  retiredBefore: Date,
  limit: number,
): Promise<string[]> {
  const rows = await tx.sql<{ kid: string }[]>`
    delete from signing_keys where kid in (
      select kid from signing_keys k
      where state = 'retired' and retired_at <= ${retiredBefore}
        and not exists (select 1 from tokens where tokens.kid = k.kid)
      order by retired_at limit ${limit} for update skip locked)
    returning kid`;
  return rows.map((row) => row.kid);
}

/** Trips to identity providers that are over, ended or not (`src/sso`). */
export async function deleteDeadSsoStates(
  tx: DbOrTx,
  before: Date,
  limit: number,
): Promise<number> {
  const result = await tx.sql`
    delete from sso_states where state_hash in (
      select state_hash from sso_states where expires_at <= ${before} order by expires_at limit ${limit}
      for update skip locked)`;
  return result.count;
}

export async function deleteDeadSsoCodes(tx: DbOrTx, before: Date, limit: number): Promise<number> {
  const result = await tx.sql`
    delete from sso_codes where code_hash in (
      select code_hash from sso_codes where expires_at <= ${before} order by expires_at limit ${limit}
      for update skip locked)`;
  return result.count;
}
