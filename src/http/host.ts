/** A name of DNS or an address, and perhaps a port: what RFC 9110, 7.2 lets a client name us by. */
const HOST = /^(?:[a-z0-9._-]{1,255}|\[[0-9a-f:.]{2,45}\])(?::(\d{1,5}))?$/i;
const MAX_PORT = 65_535;

/**
 * Whether the request names exactly one host in a form that nobody reads in two ways. Bun joins several by a comma. Where
 * there is none, as HTTP/1.0 allows, the URL that it makes has no origin; a request of our own making has one and no header.
 */
export function hasOneHost({ headers, url }: Pick<Request, "headers" | "url">): boolean {
  const host = headers.get("host");
  if (host === null) return URL.canParse(url);
  const found = HOST.exec(host);
  return found !== null && Number(found[1] ?? 0) <= MAX_PORT;
}
