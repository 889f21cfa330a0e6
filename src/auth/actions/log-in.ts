import type { Call } from "../../http/call.ts";
import { Problem } from "../../lib/problem.ts";
import type { Config } from "../../lib/config.ts";
import type { KeyRing } from "../key-ring.ts";
import type { LoginAnswer, LoginBody } from "../model.ts";
import { attemptSignIn, type AttemptDeps, type AttemptOutcome } from "./attempt-sign-in.ts";
import { openOwnSession } from "./open-session.ts";

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
  const outcome = await attemptSignIn(deps, attempt, (tx, user, now) =>
    openOwnSession(tx, deps, { user, method: "login", call, now }),
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
