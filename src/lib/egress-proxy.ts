/** The HTTP proxy that deliveries leave through. What it says of itself may be logged, but for `authorization`. */
export interface EgressProxy {
  /** Name or IP literal, without brackets. Set by the operator, so that no address check applies. */
  readonly host: string;
  readonly port: number;
  /** The complete `Proxy-Authorization` value. */
  readonly authorization: string | undefined;
}

const FORM = "must be an http URL without a path, such as http://proxy.example:3128";

/** Reads `http://[user:password@]host[:port]`. Throws with a reason that repeats no part of the URL: it may hold a password. */
export function parseProxyUrl(text: string): EgressProxy {
  const url = URL.parse(text);
  if (url === null || url.protocol !== "http:" || url.hostname === "" || url.port === "0")
    throw new Error(FORM);
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "") throw new Error(FORM);
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? 80 : Number(url.port),
    authorization: basicCredentials(url.username, url.password),
  };
}

/** RFC 7617: the first colon parts user and password, so a user has none; control characters have no meaning. */
function basicCredentials(username: string, password: string): string | undefined {
  if (username === "" && password === "") return undefined;
  const user = decodePart(username);
  const secret = decodePart(password);
  if (user === undefined || secret === undefined || user.includes(":"))
    throw new Error(
      "must have a user without a colon, and user and password percent-encoded in UTF-8",
    );
  return `Basic ${Buffer.from(`${user}:${secret}`).toString("base64")}`;
}

function decodePart(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text);
    return /\p{Cc}/u.test(decoded) ? undefined : decoded;
  } catch {
    return undefined;
  }
}
