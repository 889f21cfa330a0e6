/** HMAC-SHA256 in hex digits, of a text its UTF-8. node:crypto makes a stream of each: dearer, and more to collect. */
export function hmacSha256Hex(key: string, data: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256", key).update(data).digest("hex");
}
