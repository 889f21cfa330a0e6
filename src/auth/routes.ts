import type { Config } from "../lib/config.ts";
import { createCodeMac } from "./code-mac.ts";
import { passwordRoutes, type PasswordDeps } from "./routes/passwords.ts";
import { personalTokenRoutes, type PersonalTokenDeps } from "./routes/personal-tokens.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { signInRoutes, type SignInDeps } from "./routes/sign-in.ts";

interface AuthDeps extends SignInDeps, PersonalTokenDeps, Omit<PasswordDeps, "codes"> {
  readonly config: SignInDeps["config"] &
    PasswordDeps["config"] &
    Pick<Config, "masterKey" | "masterKeyPrevious">;
}

/** interface.md 4.1, 4.2, 4.4 and 5.1; decisions.md 2. */
export function authRoutes(deps: AuthDeps) {
  return [
    ...signInRoutes(deps),
    ...passwordRoutes({ ...deps, codes: createCodeMac(deps.config) }),
    ...personalTokenRoutes(deps),
    ...sessionRoutes(deps),
  ];
}
