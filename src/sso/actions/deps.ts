import type { Db } from "../../../db/client.ts";
import { recordAudit, type AuditActor } from "../../auth/actions/audit.ts";
import type { KeyRing } from "../../auth/key-ring.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import type { IdentityProviders } from "../identity-providers.ts";
import { SsoError } from "../places.ts";

export interface SsoDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly keys: KeyRing;
  readonly providers: IdentityProviders;
  readonly config: Pick<Config, "serverRoot" | "ssoReturnTo" | "accessTokenTtlS">;
}

/** What the audit row says if the leg is refused. The leg fills it in as it finds out. */
export interface AttemptedLeg {
  readonly leg: "redirect" | "callback" | "exchange";
  readonly requestContext: RequestContext;
  /** The connection that the request names, if it names one. */
  connectionId?: string | undefined;
  /** The user, from when the leg has found out who it is. */
  actor?: AuditActor | undefined;
}

/** Runs one leg. A refusal becomes an audit row, outside of the leg's own transaction, and undefined. */
export async function auditRefusal<T>(
  { db, clock }: Pick<SsoDeps, "db" | "clock">,
  attempted: AttemptedLeg,
  run: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof SsoError)) throw error;
    const { leg, requestContext, actor, connectionId } = attempted;
    await recordAudit(db, {
      at: clock.now(),
      action: "SSO_REFUSED",
      actor: actor ?? null,
      requestContext,
      details: {
        leg,
        reason: error.reason,
        ...(connectionId !== undefined && { connection_id: connectionId }),
        ...error.details,
      },
    });
    return undefined;
  }
}

/** The context that a client secret is sealed in (`src/master-key.ts`). */
export function clientSecretContext({ companyId, id }: { companyId: number; id: string }): string {
  return `sso:${companyId}:${id}`;
}
