import { closeSync, openSync } from "node:fs";

import { ProxyRefusal, type Connection, type ConnectionPhase } from "./connection.ts";

export type FailureCode =
  | "invalid_url"
  | "timeout"
  | "dns"
  | "blocked_address"
  | "connect"
  | "tls"
  | "reset"
  | "protocol";

/** How much of a failure's detail is kept (our choice): a receiver's certificate can put a long list of names into it. */
export const MAX_DETAIL_CHARS = 300;
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

/**
 * Whose failure an end is, and which: `ours` is one of our proxy, or of this machine (contract 7.8). Bun 1.4.4 reports a
 * lack of descriptors as ECONNREFUSED, and the resolver as a name that does not exist: so descriptors are tried.
 */
export function closeCode(phase: ConnectionPhase, error: Error | undefined): FailureCode | "ours" {
  const code = codeOf(error);
  if (phase === "connecting" || phase === "tunnelling") {
    if (OUR_CODES.test(code) || lacksDescriptors()) return "ours";
    return isAboutAddress(phase, error) ? "connect" : "ours";
  }
  // TLS 1.3 reports a refused client only after the handshake.
  return phase === "handshaking" || code.startsWith("ERR_SSL") ? "tls" : "reset";
}

/** What to say about an end. The code of an error says what a message such as "unable to verify" only hints at. */
export function closeDetail(phase: ConnectionPhase, error: Error | undefined): string {
  if (error === undefined)
    return `the ${phase === "tunnelling" ? "proxy" : "receiver"} closed the connection`;
  const code = codeOf(error);
  const { message } = error;
  // Each text includes the empty one.
  const text = message.includes(code) ? message : `${code}: ${message}`;
  return text.slice(0, MAX_DETAIL_CHARS).toWellFormed();
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Errors that only this machine can cause: it has no descriptor, buffer, memory, port or permission left. */
const OUR_CODES = /^(?:EMFILE|ENFILE|ENOBUFS|ENOMEM|EADDRNOTAVAIL|EAGAIN|EPERM|EACCES|EAI_MEMORY)$/;

export function lacksDescriptors(): boolean {
  try {
    closeSync(openSync("/dev/null", "r"));
    return false;
  } catch (error) {
    return /^E[MN]FILE$/.test(codeOf(error));
  }
}
