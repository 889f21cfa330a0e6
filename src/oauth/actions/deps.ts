import type { Db } from "../../../db/client.ts";
import type { FailureAudit } from "../../audit/failures.ts";
import type { KeyRing } from "../../auth/keys/key-ring.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { Log } from "../../lib/log.ts";
import type { Passwords } from "../../lib/password.ts";
import type { SecretBox } from "../../lib/secrets.ts";

export interface OAuthDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly box: SecretBox;
  readonly keys: KeyRing;
  readonly failures: FailureAudit;
  readonly passwords: Passwords;
  readonly config: Pick<
    Config,
    | "securityMails"
    | "serverRoot"
    | "lockScheduleS"
    | "accessTokenTtlS"
    | "refreshTokenTtlS"
    | "refreshMaxDays"
    | "refreshLeewayS"
    | "sessionLimits"
    | "operatorsRequireSecondFactor"
  >;
}
