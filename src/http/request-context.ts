import { BlockList, isIP } from "node:net";

import { monotonicFactory } from "ulid";

import type { Creation } from "./creation.ts";

/** Data of a request that is known before authentication. Audit rows contain it unchanged. */
export interface RequestContext {
  readonly requestId: string;
  readonly ip: string;
  readonly userAgent: string | null;
  readonly headers: Headers;
  /** Set for a request whose `Idempotency-Key` no earlier request has used. */
  creation?: Creation;
}

/**
 * Generates request ids. An id in the same millisecond as the previous one is the previous one plus 1, which takes a
 * fifth of the time of a new random id. That is safe, because request ids are not secret.
 */
const nextId = monotonicFactory();

const SANE_TOKEN = /^[A-Za-z0-9._-]{1,128}$/;
const USER_AGENT_LIMIT = 256;

/**
 * Reads the request context from the request's headers. `X-Request-Id` becomes the request id if it has up to 128
 * letters, digits, `.`, `_` and `-` (contract 2.8).
 */
export function readRequestContext(
  headers: Headers,
  peer: string,
  isProxy: (address: string) => boolean,
): RequestContext {
  const given = headers.get("x-request-id") ?? "";
  return {
    requestId: SANE_TOKEN.test(given) ? given : nextId(),
    ip: clientAddress(headers.get("x-forwarded-for"), peer, isProxy),
    userAgent: headers.get("user-agent")?.slice(0, USER_AGENT_LIMIT) ?? null,
    headers,
  };
}

/**
 * Returns the address of the client from `X-Forwarded-For`: the last address that does not belong to a trusted proxy.
 * The addresses before it are ignored, because the caller may have invented them.
 */
function clientAddress(
  forwarded: string | null,
  peer: string,
  isProxy: (address: string) => boolean,
): string {
  const hops = [...(forwarded?.split(",").map((hop) => withoutPort(hop.trim())) ?? []), peer];
  for (let i = hops.length - 1; i > 0; i--) {
    const hop = hops[i] ?? "";
    const before = hops[i - 1] ?? "";
    if (!isProxy(hop) || isIP(before) === 0) return hop;
  }
  return hops[0] ?? peer;
}

/** Removes the port that some proxies write: `1.2.3.4:5678` and `[2001:db8::1]:443` (RFC 7239, 6). */
function withoutPort(hop: string): string {
  const [, v4, v6] = /^(?:([\d.]+):\d{1,5}|\[([^\]]*)\](?::\d{1,5})?)$/.exec(hop) ?? [];
  return v4 ?? v6 ?? hop;
}

/**
 * Converts the setting `TRUSTED_PROXIES`, a list of networks, into a function that returns whether an address is a
 * trusted proxy.
 */
export function proxyTest(networks: readonly string[]): (address: string) => boolean {
  if (networks.length === 0) return () => false;
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const isV6 = isIP(address) === 6;
    const longest = isV6 ? 128 : 32;
    list.addSubnet(address, Number(bits ?? longest), isV6 ? "ipv6" : "ipv4");
  }
  return (address) => list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}
