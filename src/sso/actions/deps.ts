import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { AuditActor } from "../../audit/actions.ts";
import type { KeyRing } from "../../auth/key-ring.ts";
import type { Call } from "../../http/call.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import type { IdentityProviders } from "../identity-providers.ts";
import { Refusal } from "../refusal.ts";

export interface SsoDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly keys: KeyRing;
  readonly providers: IdentityProviders;
  readonly config: Pick<Config, "serverRoot" | "ssoReturnTo" | "accessTokenTtlS">;
}

/** What is known of a refused sign-in. */
export interface Attempted {
  readonly leg: "redirect" | "callback" | "exchange";
  readonly call: Call;
  /** The connection that the request names, if it is one. */
  connectionId?: string | undefined;
  /** Once it is known who it is. */
  actor?: AuditActor | undefined;
}

/** Runs one leg; a refusal leaves an audit row, whatever its transaction did, and is answered by undefined. */
export async function auditRefusal<T>(
  { db, clock }: Pick<SsoDeps, "db" | "clock">,
  attempted: Attempted,
  run: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { leg, call, actor, connectionId } = attempted;
    await recordAudit(db, {
      at: clock.now(),
      action: "SSO_REFUSED",
      actor: actor ?? null,
      call,
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

/** What a sealed client secret is tied to (`src/outbox/sealed-columns.ts`). */
export function clientSecretContext({ companyId, id }: { companyId: number; id: string }): string {
  return `sso:${companyId}:${id}`;
}
