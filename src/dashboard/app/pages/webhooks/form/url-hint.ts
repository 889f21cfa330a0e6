interface UrlHint {
  /** An error is certain; an advice may be wrong, and the server decides. */
  readonly kind: "error" | "advice";
  readonly text: string;
}

const MAX_URL_CHARS = 2_048;
const INTERNAL =
  /^(localhost|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|\[|0\.0\.0\.0)|\.(local|internal|localhost)$/;

/** Says what can be said of a webhook URL without the server, while it is typed. */
export function urlHint(text: string): UrlHint | undefined {
  if (text === "") return undefined;
  if (text.length > MAX_URL_CHARS)
    return error(`A URL has at most ${MAX_URL_CHARS.toLocaleString()} characters.`);
  if (/\s/.test(text)) return error("A URL has no spaces.");
  const url = /^https?:\/\/[^/?#]/i.test(text) ? URL.parse(text) : null;
  if (url === null) return error("Enter the whole address, such as https://example.com/webhooks.");
  if (url.username !== "" || url.password !== "")
    return error("Leave out the user name and password: the signature says that it is us.");
  if (text.includes("#")) return error("Leave out the part from # on: servers never see it.");
  if (INTERNAL.test(url.hostname))
    return advice(
      "This address is not public. It works only where the server allows it, in development.",
    );
  if (url.protocol === "http:") return advice("Outside development only https is accepted.");
  return undefined;
}

/** Names a subscription after the host that it calls. */
export function labelFor(text: string): string {
  return URL.parse(text)?.hostname.slice(0, 100) ?? "";
}

const error = (text: string): UrlHint => ({ kind: "error", text });
const advice = (text: string): UrlHint => ({ kind: "advice", text });
