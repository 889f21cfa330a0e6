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

/** The best coding that an `Accept-Encoding` takes. */
export function codingFor(accepted: string | null): keyof Encodings {
  return (["br", "gzip"] as const).find((one) => accepts(accepted ?? "", one)) ?? "identity";
}

/** RFC 9110, 12.5.3: a coding is taken unless its weight is 0; `*` stands for those that are not named. */
function accepts(header: string, coding: string): boolean {
  const weights = header.split(",").map((one) => {
    const [name = "", ...params] = one.split(";").map((part) => part.trim().toLowerCase());
    const weight = params.find((param) => param.startsWith("q="))?.slice(2);
    return { name, isTaken: weight === undefined || Number(weight) > 0 };
  });
  const named = weights.find(({ name }) => name === coding);
  return (named ?? weights.find(({ name }) => name === "*"))?.isTaken ?? false;
}
