import { checkWebhookUrl, type EgressPolicy } from "../lib/egress.ts";
import { SsoRefusal } from "./refusal.ts";

/** RFC 7518, 3.1, and RFC 8037: the signatures that only the provider can make; `none` and HMAC are none of them. */
const ASYMMETRIC = /^(?:(?:RS|PS|ES)(?:256|384|512)|EdDSA|Ed25519)$/;

/** The part of a provider's discovery document that is used here (OpenID Connect Discovery 1.0, 3). */
export interface Metadata {
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly jwksUri: string;
  readonly userinfoEndpoint: string | undefined;
  readonly algorithms: readonly string[];
  readonly clientAuthentication: "client_secret_basic" | "client_secret_post" | "none";
  /** Whether the callback always carries `iss` (RFC 9207, 3). */
  readonly sendsIss: boolean;
}

export function readMetadata(
  document: object,
  { issuer, policy }: { issuer: string; policy: EgressPolicy },
): Metadata {
  const fields: Readonly<Record<string, unknown>> = { ...document };
  // Discovery 1.0, 4.3: a document that names another issuer does not speak for this one.
  if (fields["issuer"] !== issuer) throw new SsoRefusal("bad_discovery", { field: "issuer" });
  const url = (name: string) => endpoint(fields, name, policy);
  const named = texts(fields["id_token_signing_alg_values_supported"]) ?? ["RS256"];
  const algorithms = named.filter((one) => ASYMMETRIC.test(one));
  if (algorithms.length === 0)
    throw new SsoRefusal("bad_discovery", { field: "id_token_signing_alg_values_supported" });
  return {
    authorizationEndpoint: url("authorization_endpoint"),
    tokenEndpoint: url("token_endpoint"),
    jwksUri: url("jwks_uri"),
    userinfoEndpoint:
      fields["userinfo_endpoint"] === undefined ? undefined : url("userinfo_endpoint"),
    algorithms,
    clientAuthentication: authentication(fields["token_endpoint_auth_methods_supported"]),
    sendsIss: fields["authorization_response_iss_parameter_supported"] === true,
  };
}

/** Checks the addresses of the browser's pages too: one on a private network is no identity provider. */
function endpoint(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  policy: EgressPolicy,
): string {
  const value = fields[name];
  if (typeof value !== "string" || checkWebhookUrl(value, policy).kind === "refused")
    throw new SsoRefusal("bad_discovery", { field: name });
  return value;
}

/** Discovery 1.0, 3: a document that names no method means Basic. */
function authentication(supported: unknown): Metadata["clientAuthentication"] {
  const methods = texts(supported) ?? ["client_secret_basic"];
  if (methods.includes("client_secret_basic")) return "client_secret_basic";
  if (methods.includes("client_secret_post")) return "client_secret_post";
  // Its clients are public: PKCE alone holds the code (contract 4.13).
  if (methods.includes("none")) return "none";
  throw new SsoRefusal("bad_discovery", { field: "token_endpoint_auth_methods_supported" });
}

function texts(value: unknown): string[] | undefined {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : undefined;
}
