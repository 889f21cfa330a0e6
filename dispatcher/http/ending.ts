import { closeSync, openSync } from "node:fs";

import type { Connection, ConnectionPhase } from "./connection.ts";
import type { ResponseParser } from "./response-parser.ts";
import { ProxyRefusal } from "./tunnel.ts";

export type TransportErrorCode =
  | "timeout"
  | "dns"
  | "blocked_address"
  /** The egress proxy, which is ours, is not there or refuses us. Where it does not reach the receiver, that is `connect`. */
  | "proxy"
  /** This machine had no descriptor, port or buffer for it. */
  | "local"
  | "connect"
  | "tls"
  | "reset"
  | "protocol";

/** How much of a failure's detail is kept (our choice): a receiver's certificate can put a long list of names into it. */
export const MAX_DETAIL_CHARS = 300;
/** With `Connection: close`, what some servers say before they end a connection that idles. */
const REQUEST_TIMEOUT = 408;

/** Whether this was said to a connection that idled, just when the request was sent: it answers nothing. */
export function saysGoodbye({ head }: ResponseParser): boolean {
  return head?.statusCode === REQUEST_TIMEOUT && !head.keepAlive;
}

/** Whether the next address of the name may fare better. */
export function isAboutAddress(phase: ConnectionPhase, error: Error | undefined): boolean {
  if (phase === "tunnelling") return error instanceof ProxyRefusal && error.isAboutAddress;
  return phase === "connecting";
}

export function awaited(connection: Connection | undefined): string {
  if (connection === undefined) return "address";
  if (connection.phase === "tunnelling") return "tunnel through the proxy";
  if (connection.phase === "connecting") return "connection";
  return connection.phase === "handshaking" ? "TLS handshake" : "answer";
}

export function closeCode(phase: ConnectionPhase, error: Error | undefined): TransportErrorCode {
  if (phase === "connecting" || isAboutAddress(phase, error)) return "connect";
  if (phase === "tunnelling") return "proxy";
  if (phase === "handshaking") return "tls";
  // TLS 1.3 reports a refused client only after the handshake.
  return codeOf(error)?.startsWith("ERR_SSL") === true ? "tls" : "reset";
}

/** What to say about an end. The code of an error says what a message such as "unable to verify" only hints at. */
export function closeDetail(phase: ConnectionPhase, error: Error | undefined): string {
  if (error === undefined)
    return `the ${phase === "tunnelling" ? "proxy" : "receiver"} closed the connection`;
  const code = codeOf(error);
  const { message } = error;
  const text = code === undefined || message.includes(code) ? message : `${code}: ${message}`;
  return text.slice(0, MAX_DETAIL_CHARS).toWellFormed();
}

function codeOf(error: Error | undefined): string | undefined {
  return error !== undefined && "code" in error ? String(error.code) : undefined;
}

/** Errors that only this machine can cause: it has no descriptor, buffer, memory, port or permission left. */
const OUR_CODES = new Set([
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "ENOMEM",
  "EADDRNOTAVAIL",
  "EAGAIN",
  "EPERM",
  "EACCES",
  "EAI_MEMORY",
]);

/**
 * Whether a connection could not even be tried, because this machine lacks something (contract 7.8). Bun 1.4.4 reports
 * a lack of descriptors as ECONNREFUSED, and the resolver as a name that does not exist: so descriptors are tried.
 */
export function isOurOwn(phase: ConnectionPhase, error?: Error): boolean {
  if (phase !== "connecting" && phase !== "tunnelling") return false;
  if (error !== undefined && "code" in error && OUR_CODES.has(String(error.code))) return true;
  return lacksDescriptors();
}

function lacksDescriptors(): boolean {
  try {
    closeSync(openSync("/dev/null", "r"));
    return false;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "EMFILE" || code === "ENFILE";
  }
}
