import { isIPv4, isIPv6 } from "node:net";

import { LookupError, systemLookup, type Lookup, type LookupOptions } from "./name-resolver.ts";

/** Maximum length of a webhook_url in characters (contract 6.4). */
export const MAX_URL_CHARS = 2048;

/** Time limit in ms of the DNS look-up when a subscription is created or updated (contract 6.5). */
const CREATION_LOOKUP_MS = 2000;

/** Maximum length in characters of a host name; the pattern limits its labels to 63 (RFC 1035, 2.3.4). */
const MAX_NAME_CHARS = 253;
const LABEL = /^[a-z0-9_-]{1,63}$/;

/**
 * A network in CIDR form. `bits` contains its prefix as zeros and ones, so that a prefix comparison of strings decides
 * whether an address belongs to the network.
 */
export interface Network {
  readonly family: 4 | 6;
  readonly bits: string;
}

export interface EgressPolicy {
  /** Permits http URLs, for development only. */
  readonly allowHttp: boolean;
  /**
   * Networks that are exempt from the blocked ranges. An IPv4 network does not exempt addresses that are written in an
   * IPv6 form, and vice versa.
   */
  readonly allowedNetworks: readonly Network[];
}

/** The destination of a webhook request, derived from a checked URL. */
export interface WebhookTarget {
  readonly secure: boolean;
  /** The host as a name or IP literal: lower case, no brackets, no trailing dot. */
  readonly host: string;
  readonly isLiteral: boolean;
  readonly port: number;
  /** Path and query as the request line contains them. */
  readonly path: string;
  /** The `Host` header; it contains the port only if it is not the default of the scheme. */
  readonly authority: string;
  /** Scheme, host and port. HTTP connections are reused within one origin only. */
  readonly origin: string;
}

type UrlRefusal = {
  kind: "refused";
  code: "invalid_url" | "blocked_address";
  /** The reason in plain language, for the `errors` of a 422. */
  reason: string;
};

export type UrlCheck = { kind: "target"; target: WebhookTarget } | UrlRefusal;

export type Resolution =
  | { kind: "resolved"; addresses: readonly string[] }
  | { kind: "refused"; reason: string }
  /**
   * `isAnswered` means that DNS answered that the name has no address. Otherwise DNS gave no answer. If the resolver
   * has cached the failure, `rememberedMs` is the monotonic time in ms at which the failed look-up began; undefined for
   * a new failure.
   */
  | { kind: "unresolved"; reason: string; isAnswered: boolean; rememberedMs?: number | undefined };

/**
 * Address ranges without public receivers: the IANA special-purpose registries (RFC 6890), and addresses that cloud
 * providers use internally.
 */
const BLOCKED_RANGES: readonly (readonly [reason: string, networks: string])[] = [
  ["an unspecified", "0.0.0.0/8 ::/128"],
  ["a loopback", "127.0.0.0/8 ::1/128"],
  ["a private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10"],
  ["a shared (CGNAT)", "100.64.0.0/10"],
  ["a link-local or metadata", "169.254.0.0/16 fe80::/10"],
  // A public address, at which Azure serves its metadata and agent protocol.
  ["a metadata", "168.63.129.16/32"],
  ["a multicast", "224.0.0.0/4 ff00::/8"],
  ["a broadcast", "255.255.255.255/32"],
  ["a documentation", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20"],
  ["a benchmarking", "198.18.0.0/15 2001:2::/48"],
  // Forms of IPv6 addresses that contain an IPv4 address. Their destination depends on gateways that this process does
  // not know.
  ["an IPv4-mapped", "::ffff:0:0/96"],
  ["an IPv4-compatible", "::/96"],
  ["a NAT64", "64:ff9b::/96 64:ff9b:1::/48"],
  ["a 6to4", "2002::/16 192.88.99.0/24"],
  ["a Teredo", "2001::/32"],
  [
    "a reserved",
    "192.0.0.0/24 192.31.196.0/24 192.52.193.0/24 192.175.48.0/24 240.0.0.0/4 2001::/23 2620:4f:8000::/48",
  ],
];

const BLOCKED_NETWORKS = BLOCKED_RANGES.flatMap(([reason, list]) =>
  parseNetworks(list).map((network) => ({ reason, network })),
);

/**
 * The only IPv6 range that is assigned to the public Internet (RFC 4291, 2.4). All other IPv6 addresses are blocked.
 */
const GLOBAL_UNICAST: Network = { family: 6, bits: "001" };

/**
 * Parses CIDR networks or single addresses, separated by commas or spaces. Throws an error that contains the first
 * invalid item.
 */
export function parseNetworks(list: string): Network[] {
  const items = list.split(/[\s,]+/).filter((item) => item !== "");
  return items.map((item) => {
    const [base = "", length, ...rest] = item.split("/");
    const address = parseAddress(base);
    if (
      address === undefined ||
      rest.length > 0 ||
      (length !== undefined && !/^\d{1,3}$/.test(length))
    )
      throw new Error(`"${item}" is not a network such as 10.0.0.0/8 or fd00::/8`);
    const prefix = length === undefined ? address.bits.length : Number(length);
    if (prefix > address.bits.length)
      throw new Error(`"${item}" has a prefix longer than ${address.bits.length} bits`);
    // 10.0.0.1/8 may mean one host or a whole network, so it is rejected: an allow-list must be unambiguous.
    if (address.bits.includes("1", prefix))
      throw new Error(`"${item}" has bits set beyond its prefix`);
    return { family: address.family, bits: address.bits.slice(0, prefix) };
  });
}

/**
 * Returns the reason why no request may go to this address; undefined if it may. Text that is not an IP address is
 * refused.
 */
export function addressRefusal(text: string, policy: EgressPolicy): string | undefined {
  const address = parseAddress(text);
  if (address === undefined) return `${text} is not an IP address`;
  if (policy.allowedNetworks.some((network) => contains(network, address))) return undefined;
  const range = BLOCKED_NETWORKS.find(({ network }) => contains(network, address));
  if (range !== undefined) return `${text} is ${range.reason} address`;
  if (address.family === 6 && !contains(GLOBAL_UNICAST, address))
    return `${text} is not a public address`;
  return undefined;
}

/** Checks everything about a URL that needs no network access: its form, its scheme, and a literal address in it. */
export function checkWebhookUrl(raw: string, policy: EgressPolicy): UrlCheck {
  if (raw.length > MAX_URL_CHARS)
    return invalid(`must be at most ${MAX_URL_CHARS} characters long`);
  // The URL parser would silently drop or convert these characters, so the stored URL would differ from the URL that is
  // called.
  if (/[\s\\]|\p{Cc}/u.test(raw))
    return invalid("must not contain spaces, control characters or backslashes");
  const url = /^https?:\/\/[^/?#]/i.test(raw) ? URL.parse(raw) : null;
  if (url === null) return invalid("must be an absolute URL such as https://example.com/hook");
  if (url.protocol === "http:" && !policy.allowHttp) return invalid("must use https");
  // The parser removes an empty user (`https://@host`), so the text is checked, too.
  if (url.username !== "" || url.password !== "" || /^[^/?#]*\/\/[^/?#]*@/.test(raw))
    return invalid("must not contain a user name or password");
  if (raw.includes("#")) return invalid("must not contain a fragment");
  if (url.port === "0") return invalid("must not use port 0");
  return checkHost(url, policy);
}

/**
 * Resolves the host and checks every address. A single blocked address refuses the whole host, because a request may go
 * to any of its addresses. An IP literal is not looked up.
 */
export async function resolveChecked(
  host: string,
  policy: EgressPolicy,
  { lookup, ...options }: LookupOptions & { readonly lookup: Lookup },
): Promise<Resolution> {
  let addresses: readonly string[] = [host];
  if (parseAddress(host) === undefined) {
    try {
      addresses = await beforeAbort(lookup(host, options), options.signal);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (!(error instanceof LookupError)) return { kind: "unresolved", reason, isAnswered: false };
      const { isAnswer: isAnswered, rememberedMs } = error;
      return { kind: "unresolved", reason, isAnswered, rememberedMs };
    }
  }
  for (const address of addresses) {
    const refusal = addressRefusal(address, policy);
    if (refusal !== undefined) return { kind: "refused", reason: refusal };
  }
  if (addresses.length === 0)
    return { kind: "unresolved", reason: `${host} has no address`, isAnswered: true };
  return { kind: "resolved", addresses };
}

/**
 * Checks a URL when a subscription is created or updated. A name that cannot be resolved in time is accepted: receivers
 * are often registered before they exist, and every TCP connection to them checks the address again.
 */
export async function checkNewWebhookUrl(
  raw: string,
  policy: EgressPolicy,
  options: Pick<LookupOptions, "partnerId"> & {
    lookup?: Lookup | undefined;
    boundMs?: number;
  } = {},
): Promise<UrlCheck> {
  const check = checkWebhookUrl(raw, policy);
  if (check.kind === "refused") return check;
  const { lookup = systemLookup, boundMs = CREATION_LOOKUP_MS, partnerId } = options;
  const signal = AbortSignal.timeout(boundMs);
  const { host } = check.target;
  const resolution = await resolveChecked(host, policy, { lookup, partnerId, signal });
  if (resolution.kind !== "refused") return check;
  return blocked();
}

function checkHost(url: URL, policy: EgressPolicy): UrlCheck {
  const bracketed = url.hostname.startsWith("[");
  // The trailing dot is removed: `name.` is the same host as `name`, but certificates and resolvers treat it
  // differently.
  const host = bracketed ? url.hostname.slice(1, -1) : url.hostname.replace(/\.$/, "");
  const isLiteral = bracketed || isIPv4(host);
  if (isLiteral) {
    if (addressRefusal(host, policy) !== undefined) return blocked();
  } else if (host.length > MAX_NAME_CHARS || !host.split(".").every((label) => LABEL.test(label))) {
    return invalid("must contain a valid host name");
  } else if (/(^|\.)localhost$/.test(host) && !allowsLoopback(policy)) {
    // `localhost` and its subdomains mean the loopback interface, whatever a resolver answers (RFC 6761, 6.3).
    return blocked();
  }
  const secure = url.protocol === "https:";
  const ownPort = secure ? 443 : 80;
  const port = url.port === "" ? ownPort : Number(url.port);
  const written = bracketed ? url.hostname : host;
  const authority = port === ownPort ? written : `${written}:${port}`;
  const path = url.pathname + url.search;
  const origin = `${url.protocol}//${authority}`;
  return { kind: "target", target: { secure, host, isLiteral, port, path, authority, origin } };
}

function allowsLoopback(policy: EgressPolicy): boolean {
  return ["127.0.0.1", "::1"].some((address) => addressRefusal(address, policy) === undefined);
}

/** Parses an IP address. An address with a zone (`fe80::1%eth0`) belongs to a local interface, so it is refused. */
function parseAddress(text: string): Network | undefined {
  if (isIPv4(text)) return { family: 4, bits: ipv4Bits(text) };
  if (!isIPv6(text) || text.includes("%")) return undefined;
  const dotted = text.includes(".") ? text.slice(text.lastIndexOf(":") + 1) : "";
  const [head = "", tail] = text.slice(0, text.length - dotted.length).split("::");
  const before = groupBits(head);
  const after = groupBits(tail ?? "") + (dotted === "" ? "" : ipv4Bits(dotted));
  return { family: 6, bits: before + "0".repeat(128 - before.length - after.length) + after };
}

function ipv4Bits(text: string): string {
  return text
    .split(".")
    .map((octet) => Number(octet).toString(2).padStart(8, "0"))
    .join("");
}

function groupBits(text: string): string {
  const groups = text.split(":").filter((group) => group !== "");
  return groups.map((group) => Number.parseInt(group, 16).toString(2).padStart(16, "0")).join("");
}

function contains(network: Network, address: Network): boolean {
  return network.family === address.family && address.bits.startsWith(network.bits);
}

/** Returns a promise that also rejects when the signal aborts. The look-up continues for its other callers. */
function beforeAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(new Error("DNS did not respond in time"));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

function invalid(reason: string): UrlRefusal {
  return { kind: "refused", code: "invalid_url", reason };
}

/** Refuses a URL without the reason: a precise reason would let a client explore the internal network. */
function blocked(): UrlRefusal {
  return { kind: "refused", code: "blocked_address", reason: "must resolve to a public address" };
}
