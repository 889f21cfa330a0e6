import { jwt } from "@elysiajs/jwt";
import {
  calculateJwkThumbprint,
  type CryptoKey,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTHeaderParameters,
  jwtVerify,
} from "jose";

import type { Db } from "../../../db/client.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { isBase64Url } from "../../lib/encodings.ts";
import { errorFields, type Log } from "../../lib/log.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import {
  insertSigningKey,
  listSigningKeys,
  type NewSigningKey,
  type SigningKeyRow,
} from "./queries.ts";
import type { TokenRow } from "../tokens/queries.ts";

/**
 * The JWT types. Access tokens have the type of RFC 9068. Refresh tokens are JWTs as well, of a private type (contract
 * 4.1).
 */
type TokenType = "at+jwt" | "rt+jwt";

/**
 * The `client_id` claim of tokens that the service issues to its own pages. RFC 9068, 2.2 requires the claim in every
 * token.
 */
const OWN_CLIENT_ID = "reviewrelay";

/** JWT claims that differ between tokens. `iss` and `aud` are the same in all tokens, and the signer adds `iat`. */
export interface Claims {
  readonly sub: string;
  readonly jti: string;
  readonly exp: number | undefined;
  readonly client_id: string;
  readonly scope: string;
  readonly act: { readonly sub: string } | undefined;
}

/**
 * Maximum time in seconds by which a token's `iat` may lie ahead of this machine's clock. The signing machine sets
 * `iat` by its own clock; synchronised clocks differ by less.
 */
const MAX_AHEAD_S = 300;

/** Matches every token id (`jti`) that the service issues. Text with other characters is not looked up. */
const JTI_FORM = /^[\w-]+$/;

type ClaimedRow = Pick<TokenRow, "userId" | "clientId" | "scope" | "impersonatorId" | "expiresAt">;

export function claimsOf(row: ClaimedRow, jti: string): Claims {
  return {
    sub: String(row.userId),
    jti,
    exp: row.expiresAt === null ? undefined : epochS(row.expiresAt),
    client_id: row.clientId ?? OWN_CLIENT_ID,
    scope: row.scope,
    act: row.impersonatorId === null ? undefined : { sub: String(row.impersonatorId) },
  };
}

/**
 * Reads the claims of a JWT payload. Its signature, `iss`, `aud`, `exp` and `nbf` must be verified already. Returns
 * undefined if the payload does not have the form that the service issues.
 */
function readClaims(payload: Readonly<Record<string, unknown>>, now: Date): Claims | undefined {
  const { sub, jti, exp, iat, client_id, scope, act } = payload;
  if (typeof sub !== "string" || typeof jti !== "string" || typeof iat !== "number")
    return undefined;
  if (typeof client_id !== "string" || typeof scope !== "string") return undefined;
  if (!JTI_FORM.test(jti)) return undefined;
  if (iat > epochS(now) + MAX_AHEAD_S) return undefined;
  if (exp !== undefined && typeof exp !== "number") return undefined;
  const actor = readActor(act);
  return actor === "malformed" ? undefined : { sub, jti, exp, client_id, scope, act: actor };
}

function readActor(act: unknown): Claims["act"] | "malformed" {
  if (act === undefined) return undefined;
  if (typeof act !== "object" || act === null || !("sub" in act)) return "malformed";
  return typeof act.sub === "string" ? { sub: act.sub } : "malformed";
}

/**
 * Returns whether `sub`, `client_id`, `scope`, `act` and `exp` are those of the token's database row (contract 4.3).
 */
export function claimsMatch(claims: Claims, row: ClaimedRow): boolean {
  const expected = claimsOf(row, claims.jti);
  return (
    claims.sub === expected.sub &&
    claims.exp === expected.exp &&
    claims.client_id === expected.client_id &&
    claims.scope === expected.scope &&
    claims.act?.sub === expected.act?.sub
  );
}

function epochS(at: Date): number {
  return Math.floor(at.getTime() / 1000);
}

const ALGORITHM = "RS256";
const MODULUS_BITS = 2048;

/** JWT claims that are the same in every token: its issuer and its audience. */
interface Issuer {
  readonly iss: string;
  readonly aud: string;
}

type Signer = (claims: Claims) => Promise<string>;

/** One signing key of the ring, decrypted and ready for use. Only keys in the states `current` and `next` can sign. */
interface SigningKey {
  readonly kid: string;
  readonly state: SigningKeyRow["state"];
  readonly publicJwk: JWK;
  readonly verifier: CryptoKey;
  readonly signers: Readonly<Record<TokenType, Signer>> | undefined;
}

export async function generateSigningKey(box: Pick<SecretBox, "seal">): Promise<NewSigningKey> {
  const pair = await generateKeyPair(ALGORITHM, { modulusLength: MODULUS_BITS, extractable: true });
  const publicJwk = await exportJWK(pair.publicKey);
  const kid = await calculateJwkThumbprint(publicJwk, "sha256");
  const privateJwk = await exportJWK(pair.privateKey);
  return {
    kid,
    publicJwk: { ...publicJwk, kid, alg: ALGORITHM, use: "sig" },
    sealedPrivateKey: box.seal(JSON.stringify(privateJwk), signingKeyAssociatedData(kid)),
  };
}

/**
 * Verifies and decrypts a signing key from the database. Throws if the row was altered or no master key decrypts it.
 */
async function openSigningKey(
  row: SigningKeyRow,
  box: SecretBox,
  issuer: Issuer,
): Promise<SigningKey> {
  const publicJwk: JWK = row.publicJwk;
  if ((await calculateJwkThumbprint(publicJwk, "sha256")) !== row.kid)
    throw new Error(`The public half of signing key ${row.kid} is not the one that was stored.`);
  return {
    kid: row.kid,
    state: row.state,
    publicJwk,
    verifier: await importKey(publicJwk),
    signers: row.state === "retired" ? undefined : await openSigners(row, box, issuer),
  };
}

async function openSigners(
  row: SigningKeyRow,
  box: SecretBox,
  issuer: Issuer,
): Promise<Record<TokenType, Signer>> {
  const privateKey = await importKey(openPrivateJwk(row, box));
  const signerFor = (typ: TokenType): Signer => {
    // Elysia's JWT plugin has one key and one token type per instance. Only its function `sign` is used; tokens are
    // verified with the library jose.
    const plugin = jwt({ secret: privateKey, alg: ALGORITHM, kid: row.kid, typ, ...issuer })
      .decorator.jwt;
    return ({ sub, jti, client_id, scope, exp, act }) =>
      plugin.sign({
        sub,
        jti,
        client_id,
        scope,
        ...(exp !== undefined && { exp }),
        ...(act && { act: { ...act } }),
      });
  };
  return { "at+jwt": signerFor("at+jwt"), "rt+jwt": signerFor("rt+jwt") };
}

function openPrivateJwk(row: SigningKeyRow, box: SecretBox): JWK {
  try {
    return JSON.parse(box.open(row.sealedPrivateKey, signingKeyAssociatedData(row.kid)));
  } catch (cause) {
    throw new Error(
      `Signing key ${row.kid} cannot be decrypted: neither MASTER_KEY nor MASTER_KEY_PREVIOUS is the key that sealed it.`,
      { cause },
    );
  }
}

async function importKey(jwk: JWK): Promise<CryptoKey> {
  const key = await importJWK(jwk, ALGORITHM);
  if (key instanceof Uint8Array) throw new Error("A signing key must be an RSA key.");
  return key;
}

/** Returns the associated data with which the private half of a signing key is sealed. */
export function signingKeyAssociatedData(kid: string): string {
  return `signing-key:${kid}`;
}

/**
 * Interval in ms at which the signing keys are read from the database again. A rotation by another process is noticed
 * within this time.
 */
const RELOAD_EVERY_MS = 5_000;
/**
 * Minimum time in ms between two database reads for unknown key ids. A stranger can invent any number of key ids, and
 * must not cause a read with each.
 */
const UNKNOWN_KID_RELOAD_MS = 200;
/**
 * Tolerance in seconds for `exp`. `exp` has whole seconds, while the token's database row has milliseconds. The row
 * decides when a token ends, so the check of the JWT must not reject the token earlier.
 */
const TOLERANCE_S = 1;

interface KeyRingDeps {
  readonly db: Db;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: Pick<Config, "serverRoot">;
}

/**
 * The signing keys in the database. The key `current` signs. The key `next` is published but does not sign yet.
 * `retired` keys only verify.
 */
export interface KeyRing {
  sign(type: TokenType, claims: Claims): Promise<{ token: string; kid: string }>;
  /**
   * Returns the claims of a token that has this type, was signed by this service and has not expired; undefined for
   * any other text.
   */
  verify(type: TokenType, token: string): Promise<Claims | undefined>;
  /** Returns the public keys for `/.well-known/jwks.json` (RFC 7517). */
  jwks(): { keys: JWK[] };
  /** Reloads the signing keys periodically until the signal aborts, to notice rotations by other processes. */
  watch(signal: AbortSignal): Promise<void>;
}

/** Creates missing signing keys and opens the key ring. Throws if a key that signs cannot be decrypted. */
export async function openKeyRing(deps: KeyRingDeps): Promise<KeyRing> {
  await ensureKeys(deps);
  const ring = new LoadedKeys(deps);
  await ring.load();
  return ring;
}

/**
 * Creates the missing signing keys. If several processes start at the same time, the unique indexes accept the keys of
 * one of them, and the other processes use these keys.
 */
async function ensureKeys({ db, box, clock }: KeyRingDeps): Promise<void> {
  const known = new Set((await listSigningKeys(db)).map((key) => key.state));
  for (const state of ["current", "next"] as const) {
    if (known.has(state)) continue;
    await insertSigningKey(db, { ...(await generateSigningKey(box)), state, now: clock.now() });
  }
}

class LoadedKeys implements KeyRing {
  readonly #deps: KeyRingDeps;
  readonly #issuer: Issuer;
  #keys: ReadonlyMap<string, SigningKey> = new Map();
  #unknownKidReloadAtMs = Number.NEGATIVE_INFINITY;
  #loading: Promise<void> | undefined;

  constructor(deps: KeyRingDeps) {
    this.#deps = deps;
    this.#issuer = { iss: deps.config.serverRoot, aud: `${deps.config.serverRoot}/api` };
  }

  async sign(type: TokenType, claims: Claims): Promise<{ token: string; kid: string }> {
    // The current key comes from memory. A read would need a second database connection while the caller's transaction
    // holds one.
    const current = [...this.#keys.values()].find((key) => key.state === "current");
    if (current?.signers === undefined) throw new Error("The key ring has no current signing key.");
    return { token: await current.signers[type](claims), kid: current.kid };
  }

  async verify(type: TokenType, token: string): Promise<Claims | undefined> {
    // Base64url can spell the same bytes in several ways. Only the canonical form is accepted, because the service
    // issues no other.
    if (!token.split(".").every(isBase64Url)) return undefined;
    const now = this.#deps.clock.now();
    try {
      const { payload } = await jwtVerify(token, (header) => this.#verifier(header), {
        algorithms: [ALGORITHM],
        typ: type,
        issuer: this.#issuer.iss,
        audience: this.#issuer.aud,
        currentDate: now,
        clockTolerance: TOLERANCE_S,
      });
      // The signer sets `iat` by its machine's clock, which may be ahead of `deps.clock`. The later of the two clocks
      // is used, because a process must accept its own tokens.
      const machine = systemClock.now();
      return readClaims(payload, machine > now ? machine : now);
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      throw error;
    }
  }

  jwks(): { keys: JWK[] } {
    return { keys: [...this.#keys.values()].map((key) => key.publicJwk) };
  }

  async watch(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#deps.clock.sleep(RELOAD_EVERY_MS, signal);
      if (signal.aborted) return;
      await this.#reload();
    }
  }

  async load(): Promise<void> {
    const rows = await listSigningKeys(this.#deps.db);
    const opened = await Promise.all(
      rows.map(async (row) => {
        const known = this.#keys.get(row.kid);
        return known?.state === row.state
          ? known
          : openSigningKey(row, this.#deps.box, this.#issuer);
      }),
    );
    this.#keys = new Map(opened.map((key) => [key.kid, key]));
  }

  async #verifier({ kid }: JWTHeaderParameters): Promise<SigningKey["verifier"]> {
    if (kid === undefined) throw new errors.JWKSNoMatchingKey();
    const known = this.#keys.get(kid) ?? (await this.#seek(kid));
    if (known === undefined) throw new errors.JWKSNoMatchingKey();
    return known.verifier;
  }

  /**
   * Returns the key with an id that is not loaded, after it has read the keys again: another process may have rotated
   * twice and may sign with a key that this process has not loaded yet.
   */
  async #seek(kid: string): Promise<SigningKey | undefined> {
    await this.#loading;
    const nowMs = this.#deps.clock.monotonicMs();
    if (!this.#keys.has(kid) && nowMs - this.#unknownKidReloadAtMs >= UNKNOWN_KID_RELOAD_MS) {
      this.#unknownKidReloadAtMs = nowMs;
      await this.#reload();
    }
    return this.#keys.get(kid);
  }

  /**
   * Reloads the signing keys and never throws: the loaded keys stay valid when the database is unavailable or a new
   * key cannot be decrypted.
   */
  #reload(): Promise<void> {
    this.#loading ??= this.load()
      .catch((error: unknown) => this.#deps.log.error("key_ring.reload_failed", errorFields(error)))
      .finally(() => (this.#loading = undefined));
    return this.#loading;
  }
}
