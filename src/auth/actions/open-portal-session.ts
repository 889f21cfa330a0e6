import { ulid } from "ulid";

import type { Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { Call } from "../../http/call.ts";
import type { Config } from "../../lib/config.ts";
import type { KeyRing } from "../key-ring.ts";
import { insertAuthenticationEvent } from "../queries/sessions.ts";
import { holdPerson } from "./client-session.ts";
import { issueToken } from "./issue-token.ts";

/** Contract 6.20: what is opened by a link ends in an hour, and is not refreshed. */
const PORTAL_SESSION_S = 3_600;

export interface PortalSessionDeps {
  readonly keys: KeyRing;
  readonly config: Pick<Config, "accessTokenTtlS">;
}

/** Who made the link, and what it opens. */
interface OpenedLink {
  readonly userId: number;
  readonly clientId: string | null;
  readonly scope: string;
  readonly pages: readonly string[];
}

/** In the name of the link's maker; undefined if they are not active any more. `consume` takes the link, once. */
export async function openPortalSession(
  tx: Tx,
  { keys, config }: PortalSessionDeps,
  link: OpenedLink,
  { consume, call, now }: { consume: () => Promise<boolean>; call: Call; now: Date },
): Promise<{ token: string; expiresInS: number } | undefined> {
  const { userId, clientId, scope, pages } = link;
  // The user is held first, as everybody does who ends tokens: they take their links with them.
  const person = await holdPerson(tx, userId);
  if (person === undefined || !(await consume())) return undefined;
  const familyId = ulid(now.getTime());
  const { ip, userAgent } = call;
  const event = { id: familyId, userId, method: "portal", clientId, ip, userAgent } as const;
  await insertAuthenticationEvent(tx, { ...event, at: now });
  const ttlS = Math.min(PORTAL_SESSION_S, config.accessTokenTtlS);
  const grant = { kind: "portal", userId, familyId, clientId, impersonatorId: null } as const;
  const { token, jti } = await issueToken(tx, keys, { ...grant, scope, pages, ttlS, now });
  await recordAudit(tx, {
    at: now,
    action: "PORTAL_LINK_REDEEMED",
    actor: { userId, companyId: person.companyId, impersonatorId: null },
    call,
    details: { session_id: familyId, jti, pages, scope },
  });
  return { token, expiresInS: ttlS };
}
