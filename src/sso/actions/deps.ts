import type { Db } from "../../../db/client.ts";
import type { FailureAudit } from "../../auth/audit-failures.ts";
import { type AuditActor, recordAudit } from "../../auth/queries/audit.ts";
import type { KeyRing } from "../../auth/key-ring.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import type { IdentityProviders } from "../identity-providers.ts";
import type { SsoErrorReason } from "../model.ts";
import { SsoError } from "../places.ts";

export interface SsoDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly keys: KeyRing;
  readonly failures: FailureAudit;
  readonly providers: IdentityProviders;
  readonly config: Pick<Config, "serverRoot" | "ssoReturnTo" | "accessTokenTtlS" | "securityMails">;
}

/** Content of the audit row that is written if the step fails. Each step adds facts as it learns them. */
export interface AttemptedLeg {
  readonly leg: "redirect" | "callback" | "exchange";
  readonly requestContext: RequestContext;
  /** The SSO connection that the request names; undefined if it names none. */
  connectionId?: string | undefined;
  /** The user, as soon as the step has identified the user. */
  actor?: AuditActor | undefined;
}

/** Reasons that a stranger can cause at any rate with values that nobody issued. Their repeats are counted. */
const MADE_UP: ReadonlySet<SsoErrorReason> = new Set([
  "unknown_connection",
  "unknown_state",
  "unknown_code",
]);

/**
 * Runs one step (leg) of a single sign-on. If the step throws an `SsoError`, the error is audited outside of the
 * step's transaction, and undefined is returned.
 */
export async function auditSsoError<T>(
  { db, clock, failures }: Pick<SsoDeps, "db" | "clock" | "failures">,
  attempted: AttemptedLeg,
  run: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof SsoError)) throw error;
    const { leg, requestContext, actor, connectionId } = attempted;
    const details = {
      leg,
      reason: error.reason,
      ...(connectionId !== undefined && { connection_id: connectionId }),
      ...error.details,
    };
    if (MADE_UP.has(error.reason))
      await failures.record({ action: "SSO_REFUSED", details }, requestContext);
    else {
      const row = { action: "SSO_REFUSED", actor: actor ?? null, requestContext, details } as const;
      await recordAudit(db, { at: clock.now(), ...row });
    }
    return undefined;
  }
}

/** Returns the associated data with which the client secret of an SSO connection is encrypted (`src/master-key.ts`). */
export function clientSecretContext({ companyId, id }: { companyId: number; id: string }): string {
  return `sso:${companyId}:${id}`;
}
