/** The operator's HTTP proxy for deliveries. All fields except `authorization` may be logged. */
export interface EgressProxy {
  /**
   * The host name or IP address of the proxy, without brackets. The operator sets it, so the address is not checked.
   */
  readonly host: string;
  readonly port: number;
  /** The complete value of the `Proxy-Authorization` header. */
  readonly authorization: string | undefined;
}

const PROXY_URL_FORM = "must be an http URL without a path, such as http://proxy.example:3128";

/**
 * Parses `http://[user:password@]host[:port]`. The error message contains no part of the URL, which may contain a
 * password.
 */
export function parseProxyUrl(text: string): EgressProxy {
  const url = URL.parse(text);
  if (url === null || url.protocol !== "http:" || url.hostname === "" || url.port === "0")
    throw new Error(PROXY_URL_FORM);
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "") throw new Error(PROXY_URL_FORM);
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? 80 : Number(url.port),
    authorization: basicCredentials(url.username, url.password),
  };
}

/**
 * Builds Basic credentials (RFC 7617). The user name must not contain a colon, because the first colon separates user
 * and password. Control characters are not permitted.
 */
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
