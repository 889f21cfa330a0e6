import type { Call } from "../../http/route.ts";
import { Problem } from "../../lib/problem.ts";
import type { Config } from "../../lib/config.ts";
import type { KeyRing } from "../key-ring.ts";
import type { LoginAnswer, LoginBody } from "../model.ts";
import { attemptSignIn, type AttemptDeps, type AttemptOutcome } from "./attempt-sign-in.ts";
import { openSession } from "./open-session.ts";
import { readContext } from "./session-context.ts";

export interface LogInDeps extends AttemptDeps {
  readonly keys: KeyRing;
  readonly config: Pick<Config, "lockScheduleS" | "accessTokenTtlS">;
}

/** `POST /login`. */
export async function logIn(
  deps: LogInDeps,
  { email, password }: LoginBody,
  call: Call,
): Promise<LoginAnswer> {
  const attempt = { email, password, method: "login", call } as const;
  const outcome = await attemptSignIn(
    deps,
    attempt,
    async (tx, user, now): Promise<LoginAnswer> => {
      const signIn = { user, method: "login", clientId: null, scope: "*", call, now } as const;
      const { token } = await openSession(tx, deps, signIn);
      const { context, locationCount } = await readContext(tx, user.id);
      return {
        token,
        token_type: "Bearer",
        expires_in: deps.config.accessTokenTtlS,
        ...context,
        location_count: locationCount,
      };
    },
  );
  if (outcome.kind === "right") return outcome.value;
  throw refusal(outcome);
}

function refusal(outcome: Exclude<AttemptOutcome<never>, { kind: "right" }>): Problem {
  if (outcome.kind === "wrong") return new Problem("invalid_credentials");
  return new Problem("account_locked", {
    headers: { "Retry-After": String(outcome.retryAfterS) },
    errors: {
      email: [`is locked after too many wrong passwords; try again in ${outcome.retryAfterS} s`],
    },
  });
}
