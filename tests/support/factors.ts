import { generateSync } from "otplib";

import { fieldsOf } from "../../src/lib/fields.ts";
import type { Answer, TestApi } from "./api.ts";
import { PASSWORD } from "./api.ts";
import type { FakeClock } from "./clock.ts";
import type { SignInWorld } from "./sign-in.ts";
import type { TestUser } from "./tenants.ts";

/** Returns the code that an authenticator app shows, by a library that the product does not use. */
export function appCode(secret: string, clock: Pick<FakeClock, "now">, steps = 0): string {
  const epoch = Math.floor(clock.now().getTime() / 1000) + steps * 30;
  return generateSync({ secret, epoch });
}

/** A user with an authenticator app. */
export interface AppHolder {
  readonly user: TestUser;
  readonly secret: string;
  readonly factorId: string;
  readonly recoveryCodes: readonly string[];
  /** The token of the session that set up the app. */
  readonly token: string;
}

/** Sets up the app of a user by the routes, and moves the clock so that the next code is another one. */
export async function withApp(
  { api, clock }: Pick<SignInWorld, "api" | "clock">,
  user: TestUser,
): Promise<AppHolder> {
  const token = await api.login(user.email);
  const begun = await api.call("POST", "/account/second-factors/totp", { token });
  const secret = String(begun.body["secret"]);
  const body = { code: appCode(secret, clock) };
  const added = await api.call("POST", "/account/second-factors/totp/confirm", { token, body });
  if (added.status !== 200) throw new Error(`The app was refused: ${added.text}`);
  const { factor, recovery_codes } = added.body;
  clock.advance(30_000);
  return {
    user,
    secret,
    token,
    factorId: String(fieldsOf(factor)["id"]),
    recoveryCodes: Array.isArray(recovery_codes) ? recovery_codes.map(String) : [],
  };
}

/** The challenge of a sign-in that waits for a second factor. */
export interface TestChallenge {
  readonly token: string;
  readonly expiresIn: number;
  readonly methods: unknown;
  readonly enrol: unknown;
}

/** Reads the challenge of a 401. */
export function challengeOf({ status, body, text }: Answer): TestChallenge {
  if (status !== 401 || body["code"] !== "second_factor_required")
    throw new Error(`No second factor was asked for: ${status} ${text}`);
  const given = fieldsOf(body["second_factor"]);
  const { challenge_token: token, expires_in: expiresIn, methods, enrol } = given;
  return { token: String(token), expiresIn: Number(expiresIn), methods, enrol };
}

/** Sends the right password of a user who needs a second factor. */
export async function challenged(api: TestApi, { email }: TestUser): Promise<TestChallenge> {
  return challengeOf(await api.call("POST", "/login", { body: { email, password: PASSWORD } }));
}

/** Sends a proof with a challenge token. */
export function prove(api: TestApi, token: string, body: object): Promise<Answer> {
  return api.call("POST", "/login/second-factor", { token, body });
}

/** Returns six digits that no step near the present has. */
export function wrongCode({ secret }: Pick<AppHolder, "secret">, clock: FakeClock): string {
  const near = [-2, -1, 0, 1, 2].map((steps) => appCode(secret, clock, steps));
  return (
    ["000000", "111111", "222222", "333333", "444444", "555555"].find(
      (one) => !near.includes(one),
    ) ?? "666666"
  );
}
