import { createLocalJWKSet, errors, type JWTVerifyGetKey } from "jose";

import {
  checkedRequest,
  OutboundError,
  type CheckedRequest,
  type CheckedResponse,
} from "../lib/checked-http.ts";
import type { Clock } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import type { Lookup } from "../lib/name-resolver.ts";
import { Cached } from "./cached.ts";
import { readMetadata, type Metadata } from "./metadata.ts";
import { SsoRefusal } from "./refusal.ts";

/** The deadline of one call to a provider; a person waits for it in a browser. */
const CALL_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 256 * 1024;

interface IdentityProviderDeps {
  readonly clock: Clock;
  readonly config: Pick<Config, "egress" | "webhookCa" | "webhookProxy">;
  readonly lookup?: Lookup;
}

interface Provider {
  readonly metadata: Cached<Metadata>;
  readonly keys: Cached<JWTVerifyGetKey>;
}

/** Keeps the documents of identity providers, and makes every call to them. */
export class IdentityProviders {
  readonly #deps: IdentityProviderDeps;
  readonly #known = new Map<string, Provider>();

  constructor(deps: IdentityProviderDeps) {
    this.#deps = deps;
  }

  /** OpenID Connect Discovery 1.0, 4. */
  metadata(issuer: string): Promise<Metadata> {
    return this.#provider(issuer).metadata.get();
  }

  /**
   * Finds the key that a token's header names in the provider's key set. A key that is not in it may be new, so the set
   * is fetched again, but not for every header that somebody invents.
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
   * Calls a provider. Every failure to get an answer is refused for the same reason, with the failure in the details.
   */
  async call(request: CheckedRequest): Promise<CheckedResponse> {
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
      throw new SsoRefusal("provider_unreachable", { fault: error.code });
    }
  }

  #provider(issuer: string): Provider {
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
      // The library checks the form of the set, and throws if it is none.
      return createLocalJWKSet({ keys: [], ...set });
    } catch {
      throw new SsoRefusal("bad_keys");
    }
  }

  async #getJson(url: string, reason: "bad_discovery" | "bad_keys"): Promise<object> {
    const headers = { Accept: "application/json" };
    const { status, body } = await this.call({ url, method: "GET", headers });
    const value = status === 200 ? parseObject(body) : undefined;
    if (value === undefined) throw new SsoRefusal(reason, { status });
    return value;
  }
}

/** A JSON object; undefined for everything else. */
export function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    return Object.fromEntries(Object.entries(value));
  } catch {
    return undefined;
  }
}
