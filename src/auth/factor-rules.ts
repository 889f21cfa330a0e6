import { randomInt } from "node:crypto";
import { HOTP, Secret, TOTP } from "otpauth";

import { equalInConstantTime } from "../lib/secret-box.ts";
import { addMs } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import type { Principal } from "../http/principal.ts";

/** Time in ms for which a session is fresh after a proof (contract 4.27). */
export const FRESH_MS = 600_000;
/** Number of wrong answers that end a sign-in that waits for a second factor. */
export const TRIES_PER_CHALLENGE = 5;
/** Life of a challenge token in seconds, and with a factor that has to be set up first. */
export const CHALLENGE_TTL_S = 300;
export const ENROL_TTL_S = 900;
/** Time in ms for which the secret of a new app and the options of a passkey can be used. */
export const SECRET_TTL_MS = 900_000;
export const OPTIONS_TTL_MS = 300_000;
/** The most factors of a user, by kind. */
export const MOST_FACTORS = { totp: 1, passkey: 10 } as const;
export const RECOVERY_CODES = 10;

/** Whether a proof at this instant still counts. */
export function isFresh(at: Date | null, now: Date): boolean {
  return at !== null && addMs(at, FRESH_MS) > now;
}

/** Whether the company of a person, or the platform of an operator, requires a second factor. */
export function requiresFactor(
  { operatorsRequireSecondFactor }: Pick<Config, "operatorsRequireSecondFactor">,
  {
    companyType,
    role,
    requiresFactor: isRequired,
  }: Pick<Principal, "companyType" | "role"> & { readonly requiresFactor: boolean },
): boolean {
  if (companyType !== "platform") return isRequired;
  return operatorsRequireSecondFactor && role !== "service";
}

/** Whether a token is of a session of the product's own pages, which step-up concerns. */
export function isSession({
  kind,
  clientId,
  signInMethod,
}: Pick<Principal, "clientId" | "signInMethod"> & { readonly kind: Principal["tokenKind"] }) {
  return (
    kind === "access" &&
    clientId === null &&
    (signInMethod === "login" || signInMethod === "sso" || signInMethod === "password_reset")
  );
}

/** The alphabet of recovery codes: Crockford's base 32, in which no two characters look alike. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const GROUPS = 6;
const GROUP_LENGTH = 4;

/**
 * Makes a recovery code of 120 random bits, in groups. With 112 bits or more, a fast hash without a key is enough (ASVS 5.0,
 * 6.5.2). A key from the master key would void the codes when that is replaced.
 */
export function newRecoveryCode(): string {
  return Array.from({ length: GROUPS }, newGroup).join("-");
}

const newGroup = () =>
  Array.from({ length: GROUP_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");

/** Returns a recovery code as it is hashed, from what a person typed. */
export function plainRecoveryCode(typed: string): string {
  return typed.toLowerCase().replaceAll(/[\s-]/g, "").replaceAll("o", "0").replaceAll(/[il]/g, "1");
}

// Authenticator apps know these values as the defaults of RFC 6238, and some know no others.
const DIGITS = 6;
const PERIOD_S = 30;
const ALGORITHM = "SHA1";
const SECRET_BYTES = 20;
/** Number of time steps that the clock of an app may be early or late. */
const WINDOW = 1;

/** Makes the secret of an authenticator app, in base 32. */
export function newTotpSecret(): string {
  return new Secret({ size: SECRET_BYTES }).base32;
}

/** Returns the `otpauth://` URI with which an app is set up. */
export function totpUri(secret: string, { issuer, label }: { issuer: string; label: string }) {
  return new TOTP({
    issuer,
    label,
    secret,
    algorithm: ALGORITHM,
    digits: DIGITS,
    period: PERIOD_S,
  }).toString();
}

/**
 * Returns the time step to which a code of an app belongs, or undefined if it belongs to none that is accepted: one step
 * early or late, and later than the last step whose code was accepted.
 */
export function stepOfCode(
  code: string,
  { secret, lastStep }: { readonly secret: string; readonly lastStep: number | null },
  now: Date,
): number | undefined {
  const current = Math.floor(now.getTime() / 1000 / PERIOD_S);
  const key = Secret.fromBase32(secret);
  const steps = Array.from({ length: 2 * WINDOW + 1 }, (_, i) => current - WINDOW + i);
  // Every step is compared, so that the time does not tell which one was close.
  const matching = steps.filter((counter) =>
    equalInConstantTime(
      HOTP.generate({ secret: key, algorithm: ALGORITHM, digits: DIGITS, counter }),
      code,
    ),
  );
  return matching.find((step) => step > (lastStep ?? -1));
}
