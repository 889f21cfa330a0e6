import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/** Brotli quality for responses that are compressed while the client waits. */
const FAST_QUALITY = 6;
/** Brotli quality for files that are compressed once. It takes seconds, and makes the result smaller by a twelfth. */
export const SLOWLY = 11;

/** A response body in every content coding that is served. */
export interface Encodings {
  readonly br: Uint8Array<ArrayBuffer>;
  readonly gzip: Uint8Array<ArrayBuffer>;
  readonly identity: Uint8Array<ArrayBuffer>;
}

export function encode(bytes: Uint8Array<ArrayBuffer>, quality = FAST_QUALITY): Encodings {
  const params = { [constants.BROTLI_PARAM_QUALITY]: quality };
  return {
    br: new Uint8Array(brotliCompressSync(bytes, { params })),
    gzip: new Uint8Array(gzipSync(bytes)),
    identity: bytes,
  };
}

/** Maximum number of codings that are read from `Accept-Encoding`; more than any client sends. */
const MAX_CODINGS = 32;

/** Selects the best content coding that the `Accept-Encoding` header accepts. */
export function codingFor(accepted: string | null): keyof Encodings {
  const taken = codingsIn(accepted ?? "");
  const best = (["br", "gzip"] as const).find((one) => taken.get(one) ?? taken.get("*") ?? false);
  return best ?? "identity";
}

/**
 * Parses `Accept-Encoding` (RFC 9110, 12.5.3): a coding is accepted unless its weight is 0; `*` stands for all others.
 */
function codingsIn(header: string): ReadonlyMap<string, boolean> {
  const codings = header.split(",", MAX_CODINGS).map((one) => {
    const [name = "", ...params] = one.split(";").map((part) => part.trim().toLowerCase());
    const weight = params.find((param) => param.startsWith("q="))?.slice(2);
    return [name, weight === undefined || Number(weight) > 0] as const;
  });
  return new Map(codings);
}

/** Matches canonical base64url: groups of four characters, and a last group whose unused bits are zero. */
const BASE64URL = /^(?:[\w-]{4})*(?:[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])?$/;

/**
 * Returns whether the text is the canonical base64url form of some bytes (RFC 4648, 3.5). Decoders accept other
 * spellings, too.
 */
export function isBase64Url(text: string): boolean {
  return BASE64URL.test(text);
}
