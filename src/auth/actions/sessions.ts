import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import { isUlid, type Page } from "../../http/list.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import {
  deleteFamily,
  findSession,
  lockFamily,
  sessionsOf,
  stampLogoutOf,
  type SessionRow,
} from "../queries/sessions.ts";
import { recordDenial } from "./record-denial.ts";

interface OwnSessionDeps {
  readonly db: Db;
  readonly clock: Clock;
}

export function listSessions(
  { db, clock }: OwnSessionDeps,
  { userId }: Principal,
  page: Page,
): Promise<SessionRow[]> {
  return sessionsOf(db, userId, { now: clock.now(), page });
}

/** 404 where there is none that lives, 403 and an AUTHZ_DENIED row where it is another user's (contract 2.6). */
export async function findOwnSession(
  deps: OwnSessionDeps,
  { principal, call }: Caller,
  id: string,
): Promise<SessionRow> {
  const row = isUlid(id) ? await findSession(deps.db, id, deps.clock.now()) : undefined;
  if (row === undefined) throw new Problem("not_found");
  if (row.userId === principal.userId) return row;
  const details = { session_id: id, reason: "foreign_record" };
  await recordDenial(deps, principal, { call, details });
  throw new Problem("forbidden");
}

/** Ends every token of the sign-in; meanwhile the lock on the family keeps a refresh from issuing new ones. */
export async function endSession(
  { db, clock }: OwnSessionDeps,
  { principal: actor, call }: Caller,
  { id }: SessionRow,
): Promise<void> {
  const at = clock.now();
  await db.transaction(async (tx) => {
    await lockFamily(tx, id);
    const revoked = await deleteFamily(tx, id);
    if (revoked === 0) throw new Problem("not_found");
    await stampLogoutOf(tx, id, at);
    const details = { session_id: id, revoked };
    await recordAudit(tx, { at, action: "SESSION_REVOKED", actor, call, details });
  });
}
