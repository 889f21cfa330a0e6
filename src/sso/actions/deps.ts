import type { Db } from "../../../db/client.ts";
import type { FailureAudit } from "../../audit/failures.ts";
import { type AuditActor, recordAudit } from "../../audit/queries.ts";
import type { KeyRing } from "../../auth/keys/key-ring.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import type { IdentityProviders } from "../identity-providers.ts";
import type { SsoErrorReason } from "../model.ts";
import { SsoError } from "../urls.ts";

export interface SsoDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly keys: KeyRing;
  readonly failures: FailureAudit;
  readonly providers: IdentityProviders;
  readonly config: Pick<Config, "serverRoot" | "ssoReturnTo" | "accessTokenTtlS" | "securityMails">;
}

/**
 * Content of the audit row that is written if a step (leg) of a single sign-on fails. The step fills the fields as soon
 * as it knows the values.
 */
export interface AttemptedLeg {
  readonly leg: "redirect" | "callback" | "exchange";
  readonly requestContext: RequestContext;
  /** The SSO connection that the request names; undefined if it names none. */
  connectionId?: string | undefined;
  /** The user; undefined until the step has identified the user. */
  actor?: AuditActor | undefined;
}

/**
 * Failures that anyone can cause with invented values. The audit log counts repeated failures instead of recording each
 * one in a row.
 */
const INVENTED_VALUE_REASONS: ReadonlySet<SsoErrorReason> = new Set([
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
    if (INVENTED_VALUE_REASONS.has(error.reason))
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
