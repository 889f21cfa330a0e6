import { randomInt } from "node:crypto";
import { HOTP, Secret, TOTP } from "otpauth";

import { equalInConstantTime } from "../../lib/secrets.ts";
import { addMs } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import type { Principal } from "../../http/principal.ts";

/** Time in ms for which a session is fresh after a proof (contract 4.27). */
export const FRESH_MS = 600_000;
/** Number of wrong proofs after which a sign-in that waits for a second factor ends. */
export const TRIES_PER_CHALLENGE = 5;
/** Lifetimes of a challenge token in seconds: for a user who has a factor, and for one who must set it up first. */
export const CHALLENGE_TTL_S = 300;
export const ENROL_TTL_S = 900;
/** Times in ms for which the secret of a new app, and the options for a passkey, can be used. */
export const SECRET_TTL_MS = 900_000;
export const OPTIONS_TTL_MS = 300_000;
/** Maximum number of factors of a user, by kind. */
export const MOST_FACTORS = { totp: 1, passkey: 10 } as const;
export const RECOVERY_CODES = 10;

/** Returns whether a proof made at `at` still makes the session fresh. */
export function isFresh(at: Date | null, now: Date): boolean {
  return at !== null && addMs(at, FRESH_MS) > now;
}

/**
 * Returns whether a second factor is required of the user, by the user's company or, for an operator, by the platform.
 */
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

/** Returns whether a token belongs to a session of the product's own pages. Only such sessions have a step-up. */
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
const CODE_GROUPS = 6;
const CODE_GROUP_LENGTH = 4;

/**
 * Generates a recovery code of 120 random bits, in groups of characters. The database stores a fast hash without a key,
 * which is enough for codes of at least 112 random bits (ASVS 5.0, 6.5.2). A hash keyed with the master key would make
 * the codes invalid when the master key is replaced.
 */
export function newRecoveryCode(): string {
  return Array.from({ length: CODE_GROUPS }, newGroup).join("-");
}

const newGroup = () =>
  Array.from({ length: CODE_GROUP_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");

/** Returns the normal form of a typed recovery code, from which its hash is computed. */
export function plainRecoveryCode(typed: string): string {
  return typed.toLowerCase().replaceAll(/[\s-]/g, "").replaceAll("o", "0").replaceAll(/[il]/g, "1");
}

// The parameters of TOTP are the default values of RFC 6238, because some authenticator apps support no others.
const TOTP_DIGITS = 6;
const TOTP_PERIOD_S = 30;
const TOTP_ALGORITHM = "SHA1";
const TOTP_SECRET_BYTES = 20;
/** Number of time steps by which the clock of an app may be early or late. */
const TOTP_WINDOW = 1;

/** Generates the secret of an authenticator app, in base 32. */
export function newTotpSecret(): string {
  return new Secret({ size: TOTP_SECRET_BYTES }).base32;
}

/** Returns the `otpauth://` URI from which an authenticator app reads its secret. */
export function totpUri(secret: string, { issuer, label }: { issuer: string; label: string }) {
  return new TOTP({
    issuer,
    label,
    secret,
    algorithm: TOTP_ALGORITHM,
    digits: TOTP_DIGITS,
    period: TOTP_PERIOD_S,
  }).toString();
}

/**
 * Returns the time step to which a code of an app belongs. A code is accepted if its step is at most `TOTP_WINDOW`
 * steps early or late, and later than the last step whose code was accepted. Returns undefined for any other code.
 */
export function stepOfCode(
  code: string,
  { secret, lastStep }: { readonly secret: string; readonly lastStep: number | null },
  now: Date,
): number | undefined {
  const current = Math.floor(now.getTime() / 1000 / TOTP_PERIOD_S);
  const key = Secret.fromBase32(secret);
  const steps = Array.from({ length: 2 * TOTP_WINDOW + 1 }, (_, i) => current - TOTP_WINDOW + i);
  // The code is compared with every step in constant time, so that the response time does not reveal how many digits
  // are correct.
  const matching = steps.filter((counter) =>
    equalInConstantTime(
      HOTP.generate({ secret: key, algorithm: TOTP_ALGORITHM, digits: TOTP_DIGITS, counter }),
      code,
    ),
  );
  return matching.find((step) => step > (lastStep ?? -1));
}
