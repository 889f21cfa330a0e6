import { type IncomingMessage, request as plainRequest, type RequestOptions } from "node:http";
import { request as secureRequest } from "node:https";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, rootCertificates } from "node:tls";

import type { EgressProxy } from "./egress-proxy.ts";
import {
  checkWebhookUrl,
  type EgressPolicy,
  resolveChecked,
  type WebhookTarget,
} from "./egress.ts";
import { type Lookup, systemLookup } from "./name-resolver.ts";

/** Where the service may call out to, and how long and how much it listens. */
export interface CheckedHttpOptions {
  readonly policy: EgressPolicy;
  /** PEM certificates besides those that come with the runtime. */
  readonly ca?: readonly string[];
  readonly lookup?: Lookup | undefined;
  /** The operator's: connections leave through it. */
  readonly proxy?: EgressProxy | undefined;
  /** One deadline over look-up, connection, TLS, request and the whole answer. */
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

/** Why a call out did not come to an answer. */
export class OutboundError extends Error {
  readonly code: OutboundFailure;
  constructor(code: OutboundFailure, message: string) {
    super(message);
    this.name = "OutboundError";
    this.code = code;
  }
}

/**
 * One request by the rules of contract 7.11: every address of the name is checked, the connection goes
 * to one of those, and TLS and `Host` keep the name. A redirect is an answer like any other and is not followed.
 */
export async function checkedRequest(
  asked: CheckedRequest,
  options: CheckedHttpOptions,
): Promise<CheckedResponse> {
  const checked = checkWebhookUrl(asked.url, options.policy);
  if (checked.kind === "refused") throw new OutboundError(checked.code, checked.reason);
  const { target } = checked;
  const signal = AbortSignal.timeout(options.timeoutMs);
  const lookup = options.lookup ?? systemLookup;
  const resolution = await resolveChecked(target.host, options.policy, { lookup, signal });
  if (resolution.kind === "refused") throw new OutboundError("blocked_address", resolution.reason);
  if (resolution.kind === "unresolved")
    throw new OutboundError(signal.aborted ? "timeout" : "dns", resolution.reason);
  let fieldError = new OutboundError("connect", `${target.host} has no address.`);
  // Not after an answer began, or the time was up: only where this address did not serve at all.
  for (const address of resolution.addresses)
    try {
      return await send(asked, { target, address, signal, options });
    } catch (error) {
      if (!(error instanceof OutboundError) || error.code !== "connect") throw error;
      fieldError = error;
    }
  throw fieldError;
}

interface Leg {
  readonly target: WebhookTarget;
  /** Checked. */
  readonly address: string;
  readonly signal: AbortSignal;
  readonly options: CheckedHttpOptions;
}

async function send(asked: CheckedRequest, leg: Leg): Promise<CheckedResponse> {
  const { signal, options } = leg;
  const response = await open(asked, leg);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of response) {
      const bytes = Buffer.from(chunk);
      size += bytes.byteLength;
      if (size > options.maxBytes)
        throw new OutboundError("too_large", `The answer is over ${options.maxBytes} bytes.`);
      chunks.push(bytes);
    }
  } catch (error) {
    throw faultOf(error, signal, "timeout");
  } finally {
    response.destroy();
  }
  if (signal.aborted) throw faultOf(undefined, signal, "timeout");
  return { status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") };
}

async function open(asked: CheckedRequest, leg: Leg): Promise<IncomingMessage> {
  const { target, signal } = leg;
  const tunnel = await dialProxy(leg);
  return new Promise((resolve, reject) => {
    const abort = () => {
      request.destroy();
      reject(faultOf(undefined, signal, "timeout"));
    };
    // Inside a tunnel the connection is secured already.
    const isSecure = target.secure && tunnel === undefined;
    const options = optionsOf(asked, leg, tunnel);
    const request = (isSecure ? secureRequest : plainRequest)(options);
    request.once("response", resolve);
    request.once("error", (error) => reject(faultOf(error, signal, "connect")));
    // Stays for the body too: destroying the request ends its answer.
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    else request.end(asked.body);
  });
}

async function dialProxy({ target, address, signal, options }: Leg): Promise<Socket | undefined> {
  if (options.proxy === undefined) return undefined;
  const tls = target.secure ? { host: target.host, ca: authorities(options) } : undefined;
  try {
    return await openTunnel(options.proxy, { address, port: target.port, tls }, signal);
  } catch (error) {
    throw faultOf(error, signal, "connect");
  }
}

function authorities({ ca = [] }: CheckedHttpOptions): string[] {
  return [...rootCertificates, ...ca];
}

function optionsOf(
  asked: CheckedRequest,
  { target, address, options }: Leg,
  tunnel: Socket | undefined,
): RequestOptions {
  const { host, port, path, authority, secure } = target;
  const found = { address, family: isIP(address) };
  const common = {
    host,
    port,
    path,
    method: asked.method,
    headers: {
      ...asked.headers,
      Host: authority,
      "Accept-Encoding": "identity",
      Connection: "close",
    },
  };
  // Without an agent, which would open a connection of its own.
  if (tunnel !== undefined) return { ...common, createConnection: () => tunnel };
  return {
    ...common,
    agent: false,
    // The checked address, whatever the name resolves to by now.
    lookup: (_name, wanted, done) =>
      wanted.all === true ? done(null, [found]) : done(null, address, found.family),
    ...(secure && {
      ca: authorities(options),
      rejectUnauthorized: true,
      ...(isIP(host) === 0 && { servername: host }),
    }),
  };
}

function faultOf(error: unknown, signal: AbortSignal, otherwise: OutboundFailure): OutboundError {
  if (error instanceof OutboundError) return error;
  if (signal.aborted) return new OutboundError("timeout", "There was no whole answer in time.");
  return new OutboundError(otherwise, error instanceof Error ? error.message : "Unknown.");
}

/** A proxy that answers more than this before its tunnel stands is none. */
const MAX_HEAD_BYTES = 16 * 1024;
const HEAD_END = "\r\n\r\n";

export interface TunnelEnd {
  /** Checked; the proxy is asked for it and not for the name, which it might resolve to another. */
  readonly address: string;
  readonly port: number;
  /** Of the certificate; undefined for a plain connection. */
  readonly tls: { readonly host: string; readonly ca: readonly string[] } | undefined;
}

/** A connection through the operator's proxy (RFC 9110, 9.3.6). Rejects if the proxy or TLS refuses; `signal` destroys it. */
export async function openTunnel(
  proxy: EgressProxy,
  end: TunnelEnd,
  signal: AbortSignal,
): Promise<Socket> {
  const socket = connect({ host: proxy.host, port: proxy.port });
  // For ever: an error that comes when nobody listens any more must not end the process.
  socket.on("error", () => {});
  signal.addEventListener("abort", () => socket.destroy(), { once: true });
  try {
    await askFor(socket, proxy, end);
    return end.tls === undefined ? socket : await startTls(socket, end.tls);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function askFor(socket: Socket, { authorization }: EgressProxy, to: TunnelEnd): Promise<void> {
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
      // What stands behind is the proxy's own, since nothing was asked of the other side yet.
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
  const secured = connectTls({ socket, host, ca: [...ca], rejectUnauthorized: true, ...named });
  return new Promise((resolve, reject) => {
    secured.once("secureConnect", () => resolve(secured));
    // These stay: a late error must not end the process.
    secured.on("error", reject);
    secured.once("close", () => reject(new Error("The connection was closed.")));
  });
}
