import { MAX_PARAMETERS, readParameters, type Parameters } from "../http/text.ts";
import { OAuthError } from "./oauth-error.ts";

const PERCENT_ESCAPES = /(?:%[0-9a-f]{2})+/gi;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * The parameters of a form or a query. A parameter without a value counts as absent, and a parameter must not be
 * repeated (RFC 6749, 3.1).
 */
export class Params {
  readonly #values: Parameters;

  /** Parses the parameters. Throws `invalid_request` if there are more than `MAX_PARAMETERS`. */
  constructor(text: string) {
    const values = readParameters(text);
    if (values === undefined)
      throw new OAuthError(
        "invalid_request",
        `The request has more than ${MAX_PARAMETERS} parameters.`,
      );
    this.#values = values;
  }

  /** Returns the value of a parameter. Throws `invalid_request` if the parameter is given twice. */
  one(name: string): string | undefined {
    const [value, ...more] = this.#values.get(name) ?? [];
    if (more.length > 0) throw new OAuthError("invalid_request", `${name} is repeated.`);
    return value === "" ? undefined : value;
  }

  /**
   * Returns the value of a parameter as sent, even if it is empty; undefined if the parameter is absent or repeated.
   */
  asGiven(name: string): string | undefined {
    const [value, ...more] = this.#values.get(name) ?? [];
    return more.length > 0 ? undefined : value;
  }

  required(name: string): string {
    const value = this.one(name);
    if (value === undefined) throw new OAuthError("invalid_request", `${name} is missing.`);
    return value;
  }

  refuseRepeated(): void {
    for (const name of this.#values.keys()) this.one(name);
  }
}

/**
 * Reads the body as a form. Throws `invalid_request` for a body of any other content type (RFC 6749, 3.2 and appendix
 * B).
 */
export function readForm(headers: Headers, raw: Uint8Array): Params {
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  // An empty body without a content type counts as a form without parameters.
  if (raw.byteLength === 0 && type === "") return new Params("");
  if (type.trim().toLowerCase() !== "application/x-www-form-urlencoded")
    throw new OAuthError("invalid_request", "The body must be application/x-www-form-urlencoded.");
  return new Params(decodeForm(raw));
}

/**
 * Decodes the text of a form. Throws an error for percent-encoded bytes that are not UTF-8, because URLSearchParams
 * would silently replace them.
 */
function decodeForm(raw: Uint8Array): string {
  try {
    const text = utf8.decode(raw);
    for (const [run] of text.matchAll(PERCENT_ESCAPES)) decodeURIComponent(run);
    return text;
  } catch {
    throw new OAuthError("invalid_request", "The body is not a form in UTF-8.");
  }
}
