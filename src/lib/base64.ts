/** Groups of four, and a last one whose unused bits are zero: of all spellings of the same bytes the one that is written. */
const BASE64URL = /^(?:[\w-]{4})*(?:[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])?$/;

/** RFC 4648, 3.5: whether the text is what base64url makes of some bytes; decoders take other spellings, too. */
export function isBase64Url(text: string): boolean {
  return BASE64URL.test(text);
}
