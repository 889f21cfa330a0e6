type Headers = Readonly<Record<string, string | readonly string[]>>;

/** The client makes them anew. */
const OWN = ["host", "content-length", "connection", "accept-encoding"];

/**
 * Writes a request as a command of a shell. The signature is the one that was sent, so it fits this body alone; the secret
 * that it was made with is not in it.
 */
export function asCurl(url: string, headers: Headers, body: string): string {
  const lines = Object.entries(headers).flatMap(([name, value]) => {
    if (OWN.includes(name.toLowerCase())) return [];
    const values = typeof value === "string" ? [value] : value;
    return values.map((one) => `  -H ${quoted(`${name}: ${one}`)} \\`);
  });
  return [
    "# The signature is that of this attempt. For another body, with your secret in the place of SECRET:",
    "# printf '%s' \"$BODY\" | openssl dgst -sha256 -hmac SECRET",
    `curl -X POST ${quoted(url)} \\`,
    ...lines,
    `  --data-raw ${quoted(body)}`,
  ].join("\n");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
