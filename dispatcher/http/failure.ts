import { closeSync, openSync } from "node:fs";

import { type ConnectionPhase, ProxyRefusal } from "./connection.ts";

/**
 * The parts of the way to a receiver that are ours (contract 7.8). `machine`: file descriptors, ports and buffers.
 * `proxy`: the egress proxy cannot be reached or rejects our credentials. `policy`: the proxy or a firewall of ours
 * refuses the destination. `names`: DNS. `network`: the route to the receiver.
 */
export type OwnPart = "machine" | "proxy" | "policy" | "names" | "network";

/** A part of our own that keeps a dispatcher from receivers, and since when. */
export interface Outage {
  readonly part: OwnPart;
  readonly since: Date;
}

export type FailureCode =
  | "invalid_url"
  | "timeout"
  | "dns"
  | "blocked_address"
  | "connect"
  | "tls"
  | "reset"
  | "protocol";

/**
 * The most characters of the detail of a failure (our choice), because a certificate can put a long list of names into
 * it.
 */
export const MAX_DETAIL_CHARS = 300;

/** Whether the failure is about the address, so that the next address of the name may work. */
export function isAboutAddress(phase: ConnectionPhase, error: Error | undefined): boolean {
  if (phase === "tunnelling") return error instanceof ProxyRefusal && error.isAboutAddress;
  return phase === "connecting";
}

/** Whether a connection in this phase reaches the receiver. */
export function isEstablished(phase: ConnectionPhase | undefined): boolean {
  return phase === "handshaking" || phase === "open" || phase === "closed";
}

export function awaited(phase: ConnectionPhase | undefined): string {
  switch (phase) {
    case undefined:
      return "address";
    case "reaching":
      return "connection to the proxy";
    case "tunnelling":
      return "tunnel through the proxy";
    case "connecting":
      return "connection";
    case "handshaking":
      return "TLS handshake";
    case "open":
    case "closed":
      return "answer";
  }
}

/** Classifies the end of a connection that had reached the receiver. */
export function closeCode(phase: ConnectionPhase, error: Error | undefined): FailureCode {
  // TLS 1.3 reports a rejected client only after the handshake, so an error of TLS on an open connection counts as
  // `tls`, too.
  return phase === "handshaking" || codeOf(error).startsWith("ERR_SSL") ? "tls" : "reset";
}

/**
 * Returns the part that failed if a connection ended before it reached the receiver (contract 7.8); undefined if the
 * network or the receiver failed. Bun 1.4.4 reports a lack of file descriptors as ECONNREFUSED, and the resolver
 * reports it as an unknown name, so this function opens a file descriptor as a test.
 */
export function faultOf(phase: ConnectionPhase, error: Error | undefined): OwnPart | undefined {
  const code = codeOf(error);
  if (MACHINE_CODES.test(code) || lacksDescriptors()) return "machine";
  if (phase === "reaching" || (error instanceof ProxyRefusal && error.isAboutUs)) return "proxy";
  if (POLICY_CODES.test(code)) return "policy";
  return isAboutAddress(phase, error) ? undefined : "policy";
}

/**
 * Describes the end of a connection. The code of the error is more precise than a message such as "unable to verify".
 */
export function closeDetail(phase: ConnectionPhase, error: Error | undefined): string {
  if (error === undefined)
    return `the ${isEstablished(phase) || phase === "connecting" ? "receiver" : "proxy"} closed the connection`;
  const code = codeOf(error);
  const { message } = error;
  // An error without a code has the empty code, which every message includes, so that the message stays as it is.
  const text = message.includes(code) ? message : `${code}: ${message}`;
  return text.slice(0, MAX_DETAIL_CHARS).toWellFormed();
}

export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Codes of errors that only this machine can cause: it lacks a file descriptor, buffer, memory or port. */
const MACHINE_CODES = /^(?:EMFILE|ENFILE|ENOBUFS|ENOMEM|EADDRNOTAVAIL|EAGAIN|EAI_MEMORY)$/;
/** Codes of errors with which a firewall of this machine refuses a destination. */
const POLICY_CODES = /^(?:EPERM|EACCES)$/;
/** The parts of our own that a connection to the receiver shows to work, without a proxy or through one. */
export const DIRECT: readonly OwnPart[] = ["machine", "policy", "network"];
export const THROUGH_PROXY: readonly OwnPart[] = [...DIRECT, "proxy"];

export function lacksDescriptors(): boolean {
  try {
    closeSync(openSync("/dev/null", "r"));
    return false;
  } catch (error) {
    return /^E[MN]FILE$/.test(codeOf(error));
  }
}
