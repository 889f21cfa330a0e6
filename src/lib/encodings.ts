import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/** Of Brotli, while somebody waits. */
const QUICKLY = 6;
/** Of Brotli, where it is done once: seconds, for a twelfth less. */
export const SLOWLY = 11;

/** Some bytes in every coding that they are served in. */
export interface Encodings {
  readonly br: Uint8Array<ArrayBuffer>;
  readonly gzip: Uint8Array<ArrayBuffer>;
  readonly identity: Uint8Array<ArrayBuffer>;
}

export function encode(bytes: Uint8Array<ArrayBuffer>, quality = QUICKLY): Encodings {
  const params = { [constants.BROTLI_PARAM_QUALITY]: quality };
  return {
    br: new Uint8Array(brotliCompressSync(bytes, { params })),
    gzip: new Uint8Array(gzipSync(bytes)),
    identity: bytes,
  };
}

/** How many codings of an `Accept-Encoding` are looked at: more than any client names. */
const MAX_CODINGS = 32;

/** The best coding that an `Accept-Encoding` takes. */
export function codingFor(accepted: string | null): keyof Encodings {
  const taken = codingsIn(accepted ?? "");
  const best = (["br", "gzip"] as const).find((one) => taken.get(one) ?? taken.get("*") ?? false);
  return best ?? "identity";
}

/** RFC 9110, 12.5.3: a coding is taken unless its weight is 0; `*` stands for those that are not named. */
function codingsIn(header: string): ReadonlyMap<string, boolean> {
  const codings = header.split(",", MAX_CODINGS).map((one) => {
    const [name = "", ...params] = one.split(";").map((part) => part.trim().toLowerCase());
    const weight = params.find((param) => param.startsWith("q="))?.slice(2);
    return [name, weight === undefined || Number(weight) > 0] as const;
  });
  return new Map(codings);
}

/** Groups of four, and a last one whose unused bits are zero: of all spellings of the same bytes the one that is written. */
const BASE64URL = /^(?:[\w-]{4})*(?:[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])?$/;

/** RFC 4648, 3.5: whether the text is what base64url makes of some bytes; decoders take other spellings, too. */
export function isBase64Url(text: string): boolean {
  return BASE64URL.test(text);
}
