import type { Tx } from "../../../db/client.ts";

/**
 * The users of companies, each held as `holdUser` does: whoever issues a token for one of them has committed it by
 * now, or waits until this transaction ends.
 */
export async function holdUsersOf(tx: Tx, companyIds: readonly number[]): Promise<number[]> {
  const rows = await tx.sql<{ id: number }[]>`
    select id from users where company_id = any(${[...companyIds]}::int[]) order by id for no key update`;
  return rows.map(({ id }) => id);
}

/** All that the users have or are behind, in the order of `deleteTokensOf`. */
export async function deleteTokensOfAll(tx: Tx, userIds: readonly number[]): Promise<number> {
  const ids = [...userIds];
  const { count } = await tx.sql`
    delete from tokens where jti in (
      select jti from tokens
       where user_id = any(${ids}::int[]) or impersonator_id = any(${ids}::int[]) order by jti for update)`;
  return count;
}

export async function consumeCodesOfAll(
  tx: Tx,
  userIds: readonly number[],
  now: Date,
): Promise<void> {
  await tx.sql`
    update email_codes set consumed_at = ${now}
     where user_id = any(${[...userIds]}::int[]) and consumed_at is null`;
}

/** What is pending at the authorize page, and between it and a client. */
export async function deleteAuthorizationCodesOfAll(
  tx: Tx,
  userIds: readonly number[],
): Promise<void> {
  await tx.sql`delete from authorization_codes where user_id = any(${[...userIds]}::int[])`;
}

/** Sign-ins that an identity provider has confirmed, waiting for their exchange. */
export async function consumeSsoCodesOfAll(
  tx: Tx,
  userIds: readonly number[],
  now: Date,
): Promise<void> {
  await tx.sql`
    update sso_codes set consumed_at = ${now}
     where user_id = any(${[...userIds]}::int[]) and consumed_at is null`;
}
