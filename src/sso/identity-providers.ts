import { createLocalJWKSet, errors, type JWTVerifyGetKey } from "jose";

import {
  checkedRequest,
  type CheckedRequest,
  type CheckedResponse,
  OutboundError,
} from "../lib/checked-http.ts";
import type { Clock } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import { checkWebhookUrl, type EgressPolicy } from "../lib/egress.ts";
import { type Fields, isRecord } from "../lib/fields.ts";
import type { Lookup } from "../lib/name-resolver.ts";
import { SsoError } from "./urls.ts";

/** Deadline in ms of one request to an identity provider. It is short, because a person waits in the browser. */
const CALL_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 256 * 1024;

interface IdentityProviderDeps {
  readonly clock: Clock;
  readonly config: Pick<Config, "egress" | "webhookCa" | "webhookProxy">;
  readonly lookup?: Lookup;
}

interface CachedProvider {
  readonly metadata: Cached<Metadata>;
  readonly keys: Cached<JWTVerifyGetKey>;
}

/** Sends all requests to identity providers, and caches their discovery documents and key sets. */
export class IdentityProviders {
  readonly #deps: IdentityProviderDeps;
  readonly #known = new Map<string, CachedProvider>();

  constructor(deps: IdentityProviderDeps) {
    this.#deps = deps;
  }

  /** Returns the fields of the discovery document of an OpenID Connect issuer (OpenID Connect Discovery 1.0, 4). */
  metadata(issuer: string): Promise<Metadata> {
    return this.#provider(issuer).metadata.get();
  }

  /**
   * Returns a function that finds the key named in a token's header. If the cached key set lacks the key, the set is
   * fetched again, because the key may be new. `Cached.renew` limits these fetches, which anyone can cause with
   * invented key ids.
   */
  keyFor(issuer: string): JWTVerifyGetKey {
    const { keys } = this.#provider(issuer);
    return async (header, token) => {
      const find = await keys.get();
      try {
        return await find(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        const renewed = await keys.renew();
        return renewed(header, token);
      }
    };
  }

  /**
   * Sends a request to an identity provider. If there is no response, the method throws `provider_unreachable` with
   * the cause in the details.
   */
  async request(request: CheckedRequest): Promise<CheckedResponse> {
    const { config, lookup } = this.#deps;
    try {
      return await checkedRequest(request, {
        policy: config.egress,
        ca: config.webhookCa,
        lookup,
        proxy: config.webhookProxy,
        timeoutMs: CALL_TIMEOUT_MS,
        maxBytes: MAX_ANSWER_BYTES,
      });
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error;
      throw new SsoError("provider_unreachable", { fault: error.code });
    }
  }

  #provider(issuer: string): CachedProvider {
    const known = this.#known.get(issuer);
    if (known !== undefined) return known;
    const { clock } = this.#deps;
    const metadata = new Cached(clock, () => this.#discover(issuer));
    const keys = new Cached(clock, async () => this.#readKeys((await metadata.get()).jwksUri));
    const provider = { metadata, keys };
    this.#known.set(issuer, provider);
    return provider;
  }

  async #discover(issuer: string): Promise<Metadata> {
    const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    return readMetadata(await this.#getJson(url, "bad_discovery"), {
      issuer,
      policy: this.#deps.config.egress,
    });
  }

  async #readKeys(url: string): Promise<JWTVerifyGetKey> {
    const set = await this.#getJson(url, "bad_keys");
    try {
      // The library jose validates the form of the key set and throws if the set is invalid.
      return createLocalJWKSet({ keys: [], ...set });
    } catch {
      throw new SsoError("bad_keys");
    }
  }

  async #getJson(url: string, reason: "bad_discovery" | "bad_keys"): Promise<object> {
    const headers = { Accept: "application/json" };
    const { status, body } = await this.request({ url, method: "GET", headers });
    const value = status === 200 ? parseObject(body) : undefined;
    if (value === undefined) throw new SsoError(reason, { status });
    return value;
  }
}

/** Parses a JSON object; returns undefined for any other text. */
export function parseObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Matches signature algorithms with which only the identity provider can sign (RFC 7518, 3.1, and RFC 8037). This
 * excludes `none` and HMAC.
 */
const ASYMMETRIC_ALGORITHM = /^(?:(?:RS|PS|ES)(?:256|384|512)|EdDSA|Ed25519)$/;

/** Fields of an identity provider's discovery document that this service uses (OpenID Connect Discovery 1.0, 3). */
interface Metadata {
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly jwksUri: string;
  readonly userinfoEndpoint: string | undefined;
  readonly algorithms: readonly string[];
  readonly clientAuthentication: "client_secret_basic" | "client_secret_post" | "none";
  /** Whether the identity provider always sends `iss` in its authorization response (RFC 9207, 3). */
  readonly sendsIss: boolean;
}

export function readMetadata(
  document: object,
  { issuer, policy }: { issuer: string; policy: EgressPolicy },
): Metadata {
  const fields: Readonly<Record<string, unknown>> = { ...document };
  // A discovery document that names another issuer is rejected, because it is not valid for this issuer (Discovery 1.0,
  // 4.3).
  if (fields["issuer"] !== issuer) throw new SsoError("bad_discovery", { field: "issuer" });
  const url = (name: string) => endpointOf(fields, name, policy);
  const named = textsOf(fields["id_token_signing_alg_values_supported"]) ?? ["RS256"];
  const algorithms = named.filter((one) => ASYMMETRIC_ALGORITHM.test(one));
  if (algorithms.length === 0)
    throw new SsoError("bad_discovery", { field: "id_token_signing_alg_values_supported" });
  return {
    authorizationEndpoint: url("authorization_endpoint"),
    tokenEndpoint: url("token_endpoint"),
    jwksUri: url("jwks_uri"),
    userinfoEndpoint:
      fields["userinfo_endpoint"] === undefined ? undefined : url("userinfo_endpoint"),
    algorithms,
    clientAuthentication: authenticationMethod(fields["token_endpoint_auth_methods_supported"]),
    sendsIss: fields["authorization_response_iss_parameter_supported"] === true,
  };
}

/**
 * Reads the URL of an endpoint from the discovery document. URLs that only the browser opens are checked too, because
 * an identity provider on a private network is not allowed.
 */
function endpointOf(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  policy: EgressPolicy,
): string {
  const value = fields[name];
  if (typeof value !== "string" || checkWebhookUrl(value, policy).kind === "refused")
    throw new SsoError("bad_discovery", { field: name });
  return value;
}

/**
 * Selects the method by which this service authenticates at the token endpoint. If the discovery document names no
 * method, the method is Basic (Discovery 1.0, 3).
 */
function authenticationMethod(supported: unknown): Metadata["clientAuthentication"] {
  const methods = textsOf(supported) ?? ["client_secret_basic"];
  if (methods.includes("client_secret_basic")) return "client_secret_basic";
  if (methods.includes("client_secret_post")) return "client_secret_post";
  // With `none`, the identity provider accepts public clients. Then only PKCE protects the authorization code (contract
  // 4.13).
  if (methods.includes("none")) return "none";
  throw new SsoError("bad_discovery", { field: "token_endpoint_auth_methods_supported" });
}

function textsOf(value: unknown): string[] | undefined {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : undefined;
}

const FRESH_MS = 600_000;
/**
 * Time in ms for which a failed fetch is cached, so that not every caller waits for an identity provider that is down.
 */
const FAILED_MS = 5_000;
/**
 * Minimum time in ms between two fetches of one document by `renew`. It limits them, because anyone can cause them with
 * invented key ids.
 */
const RENEW_EVERY_MS = 60_000;

/** Caches a document of another server. Concurrent callers share one fetch of the document. */
export class Cached<T> {
  readonly #clock: Clock;
  readonly #load: () => Promise<T>;
  #loading: Promise<T> | undefined;
  #loaded: { readonly value: T; readonly atMs: number } | undefined;
  #failed: { readonly error: unknown; readonly atMs: number } | undefined;
  #renewedAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, load: () => Promise<T>) {
    this.#clock = clock;
    this.#load = load;
  }

  async get(): Promise<T> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#loaded !== undefined && nowMs - this.#loaded.atMs < FRESH_MS)
      return this.#loaded.value;
    if (this.#failed !== undefined && nowMs - this.#failed.atMs < FAILED_MS)
      throw this.#failed.error;
    return this.#reload();
  }

  /**
   * Fetches a new copy of the document. Returns the cached copy instead if the last `renew` was less than
   * `RENEW_EVERY_MS` ago.
   */
  async renew(): Promise<T> {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#renewedAtMs < RENEW_EVERY_MS) return this.get();
    this.#renewedAtMs = nowMs;
    return this.#reload();
  }

  #reload(): Promise<T> {
    this.#loading ??= this.#load()
      .then(
        (value) => {
          this.#loaded = { value, atMs: this.#clock.monotonicMs() };
          this.#failed = undefined;
          return value;
        },
        (error: unknown) => {
          this.#failed = { error, atMs: this.#clock.monotonicMs() };
          throw error;
        },
      )
      .finally(() => (this.#loading = undefined));
    return this.#loading;
  }
}
