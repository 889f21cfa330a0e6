/** HMAC-SHA256 in hex digits, of a text its UTF-8. node:crypto makes a stream of each: dearer, and more to collect. */
export function hmacSha256Hex(key: string, data: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256", key).update(data).digest("hex");
}

/** SHA-256 in hex digits, of the UTF-8 of a text: in one call, which costs less than feeding a hasher. */
export function sha256Hex(text: string): string {
  return Bun.CryptoHasher.hash("sha256", text, "hex");
}
