import { type IncomingMessage, request as plainRequest, type RequestOptions } from "node:http";
import { request as secureRequest } from "node:https";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, rootCertificates } from "node:tls";

import { checkServerIdentity } from "./certificates.ts";
import type { EgressProxy } from "./egress-proxy.ts";
import {
  checkWebhookUrl,
  type EgressPolicy,
  resolveChecked,
  type WebhookTarget,
} from "./egress.ts";
import { type Lookup, systemLookup } from "./name-resolver.ts";

/** Rules for outgoing requests: permitted addresses, maximum duration and maximum size of the response. */
export interface CheckedHttpOptions {
  readonly policy: EgressPolicy;
  /** PEM certificates trusted in addition to those of the runtime. */
  readonly ca?: readonly string[];
  readonly lookup?: Lookup | undefined;
  /** The operator's outbound proxy; if present, all connections go through it. */
  readonly proxy?: EgressProxy | undefined;
  /** The time limit in ms for look-up, connection, TLS handshake, request and complete response together. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

export interface CheckedRequest {
  readonly url: string;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface CheckedResponse {
  readonly status: number;
  readonly body: string;
}

export type OutboundFailure =
  | "invalid_url"
  | "blocked_address"
  | "dns"
  | "connect"
  | "timeout"
  | "too_large";

/** Reports why an outgoing request got no usable response. */
export class OutboundError extends Error {
  readonly code: OutboundFailure;
  constructor(code: OutboundFailure, message: string) {
    super(message);
    this.name = "OutboundError";
    this.code = code;
  }
}

/**
 * Sends one request by the rules of contract 7.11. Every address of the name is checked, and the connection goes to one
 * of them, while TLS and `Host` use the name. A redirect is returned as a response and is not followed.
 */
export async function checkedRequest(
  outgoing: CheckedRequest,
  options: CheckedHttpOptions,
): Promise<CheckedResponse> {
  const checked = checkWebhookUrl(outgoing.url, options.policy);
  if (checked.kind === "refused") throw new OutboundError(checked.code, checked.reason);
  const { target } = checked;
  const signal = AbortSignal.timeout(options.timeoutMs);
  const lookup = options.lookup ?? systemLookup;
  const resolution = await resolveChecked(target.host, options.policy, { lookup, signal });
  if (resolution.kind === "refused") throw new OutboundError("blocked_address", resolution.reason);
  if (resolution.kind === "unresolved")
    throw new OutboundError(signal.aborted ? "timeout" : "dns", resolution.reason);
  let lastError = new OutboundError("connect", `${target.host} has no address.`);
  // The next address is tried only if the connection to this address failed, but not after a response has begun or the
  // time limit has passed.
  for (const address of resolution.addresses)
    try {
      return await send(outgoing, { target, address, signal, options });
    } catch (error) {
      if (!(error instanceof OutboundError) || error.code !== "connect") throw error;
      lastError = error;
    }
  throw lastError;
}

interface Leg {
  readonly target: WebhookTarget;
  /** An address of the host that passed the check. */
  readonly address: string;
  readonly signal: AbortSignal;
  readonly options: CheckedHttpOptions;
}

async function send(outgoing: CheckedRequest, leg: Leg): Promise<CheckedResponse> {
  const { signal, options } = leg;
  const response = await open(outgoing, leg);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of response) {
      const bytes = Buffer.from(chunk);
      size += bytes.byteLength;
      if (size > options.maxBytes)
        throw new OutboundError(
          "too_large",
          `The response is larger than ${options.maxBytes} bytes.`,
        );
      chunks.push(bytes);
    }
  } catch (error) {
    throw outboundErrorOf(error, signal, "timeout");
  } finally {
    response.destroy();
  }
  if (signal.aborted) throw outboundErrorOf(undefined, signal, "timeout");
  return { status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") };
}

async function open(outgoing: CheckedRequest, leg: Leg): Promise<IncomingMessage> {
  const { target, signal } = leg;
  const tunnel = await dialProxy(leg);
  return new Promise((resolve, reject) => {
    const abort = () => {
      request.destroy();
      reject(outboundErrorOf(undefined, signal, "timeout"));
    };
    // TLS is not added to a tunnel through the proxy, which has TLS already.
    const isSecure = target.secure && tunnel === undefined;
    const options = optionsOf(outgoing, leg, tunnel);
    const request = (isSecure ? secureRequest : plainRequest)(options);
    request.once("response", resolve);
    request.once("error", (error) => reject(outboundErrorOf(error, signal, "connect")));
    // The listener stays registered until the body is read, so that an abort also ends the reading of the response.
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    else request.end(outgoing.body);
  });
}

async function dialProxy({ target, address, signal, options }: Leg): Promise<Socket | undefined> {
  if (options.proxy === undefined) return undefined;
  const tls = target.secure ? { host: target.host, ca: authorities(options) } : undefined;
  try {
    return await openTunnel(options.proxy, { address, port: target.port, tls }, signal);
  } catch (error) {
    throw outboundErrorOf(error, signal, "connect");
  }
}

function authorities({ ca = [] }: CheckedHttpOptions): string[] {
  return [...rootCertificates, ...ca];
}

function optionsOf(
  outgoing: CheckedRequest,
  { target, address, options }: Leg,
  tunnel: Socket | undefined,
): RequestOptions {
  const { host, port, path, authority, secure } = target;
  const found = { address, family: isIP(address) };
  const common = {
    host,
    port,
    path,
    method: outgoing.method,
    headers: {
      ...outgoing.headers,
      Host: authority,
      "Accept-Encoding": "identity",
      Connection: "close",
    },
  };
  // A tunnel is used without an agent, because an agent would open another connection.
  if (tunnel !== undefined) return { ...common, createConnection: () => tunnel };
  return {
    ...common,
    agent: false,
    // Connects to the checked address, even if the name has resolved to another address since the check.
    lookup: (_name, wanted, done) =>
      wanted.all === true ? done(null, [found]) : done(null, address, found.family),
    ...(secure && {
      ca: authorities(options),
      rejectUnauthorized: true,
      checkServerIdentity,
      ...(isIP(host) === 0 && { servername: host }),
    }),
  };
}

function outboundErrorOf(
  error: unknown,
  signal: AbortSignal,
  otherwise: OutboundFailure,
): OutboundError {
  if (error instanceof OutboundError) return error;
  if (signal.aborted) return new OutboundError("timeout", "The response was not complete in time.");
  return new OutboundError(otherwise, error instanceof Error ? error.message : "Unknown.");
}

/** Maximum size in bytes of the head of the proxy's response to CONNECT. */
const MAX_HEAD_BYTES = 16 * 1024;
const HEAD_END = "\r\n\r\n";

export interface TunnelEnd {
  /**
   * A checked address. CONNECT contains the address instead of the host name, because the proxy could resolve the name
   * to another address.
   */
  readonly address: string;
  readonly port: number;
  /** The host whose certificate is expected; undefined for a connection without TLS. */
  readonly tls: { readonly host: string; readonly ca: readonly string[] } | undefined;
}

/**
 * Connects through the operator's proxy (RFC 9110, 9.3.6). Rejects if the proxy or the TLS handshake fails. An abort
 * of `signal` destroys the connection.
 */
export async function openTunnel(
  proxy: EgressProxy,
  end: TunnelEnd,
  signal: AbortSignal,
): Promise<Socket> {
  const socket = connect({ host: proxy.host, port: proxy.port });
  // This listener is never removed, because an `error` event without a listener would end the process.
  socket.on("error", () => {});
  signal.addEventListener("abort", () => socket.destroy(), { once: true });
  try {
    await requestTunnel(socket, proxy, end);
    return end.tls === undefined ? socket : await startTls(socket, end.tls);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function requestTunnel(
  socket: Socket,
  { authorization }: EgressProxy,
  to: TunnelEnd,
): Promise<void> {
  const host = isIP(to.address) === 6 ? `[${to.address}]` : to.address;
  const authority = `${host}:${to.port}`;
  const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`];
  if (authorization !== undefined) lines.push(`Proxy-Authorization: ${authorization}`);
  return new Promise((resolve, reject) => {
    let head = "";
    const read = (chunk: Buffer) => {
      head += chunk.toString("latin1");
      const end = head.indexOf(HEAD_END);
      if (end === -1 && head.length <= MAX_HEAD_BYTES) return;
      socket.removeListener("data", read);
      // Bytes after the head are an error: they come from the proxy itself, because nothing was sent through the tunnel
      // yet.
      const isAlone = end === head.length - HEAD_END.length;
      if (isAlone && /^HTTP\/1\.[01] 2\d\d[ \r]/.test(head)) resolve();
      else reject(new Error("The proxy did not open the connection."));
    };
    socket.on("data", read);
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("The proxy closed the connection.")));
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  });
}

function startTls(
  socket: Socket,
  { host, ca }: { readonly host: string; readonly ca: readonly string[] },
): Promise<Socket> {
  const named = isIP(host) === 0 ? { servername: host } : {};
  const judged = { rejectUnauthorized: true, checkServerIdentity, ca: [...ca] };
  const secured = connectTls({ socket, host, ...judged, ...named });
  return new Promise((resolve, reject) => {
    secured.once("secureConnect", () => resolve(secured));
    // These listeners are never removed, because a later `error` event without one would end the process.
    secured.on("error", reject);
    secured.once("close", () => reject(new Error("The connection was closed.")));
  });
}
