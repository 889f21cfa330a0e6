import { Elysia } from "elysia";

import type { Config } from "../lib/config.ts";
import { createCodeMac } from "./code-mac.ts";
import { passwordRoutes, type PasswordRouteDeps } from "./routes/passwords.ts";
import { personalTokenRoutes, type PersonalTokenRouteDeps } from "./routes/personal-tokens.ts";
import { impersonationRoute, sessionRoutes, type SessionRouteDeps } from "./routes/sessions.ts";
import { signInRoutes, type SignInRouteDeps } from "./routes/sign-in.ts";

interface AuthRouteDeps
  extends
    SignInRouteDeps,
    PersonalTokenRouteDeps,
    SessionRouteDeps,
    Omit<PasswordRouteDeps, "codes"> {
  readonly config: SignInRouteDeps["config"] &
    PasswordRouteDeps["config"] &
    Pick<Config, "masterKey" | "masterKeyPrevious">;
}

/** Defines the routes of contract 4. */
export function authRoutes(deps: AuthRouteDeps) {
  return new Elysia({ name: "auth" })
    .use(signInRoutes(deps))
    .use(passwordRoutes({ ...deps, codes: createCodeMac(deps.config) }))
    .use(personalTokenRoutes(deps))
    .use(sessionRoutes(deps))
    .use(impersonationRoute(deps));
}
