import { closeSync, openSync } from "node:fs";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions, type SecureContext } from "node:tls";

import {
  cancelDeadline,
  type Deadline,
  type Expiring,
  startDeadline,
} from "../../src/lib/deadline.ts";
import type { EgressProxy } from "../../src/lib/egress-proxy.ts";
import type { WebhookTarget } from "../../src/lib/egress.ts";
import { ResponseParser } from "./message.ts";

/** `tunnelling` is everything up to the proxy's consent; a connection without a proxy begins at `connecting`. */
export type ConnectionPhase = "tunnelling" | "connecting" | "handshaking" | "open" | "closed";

/** The one who has a connection in use. */
export interface ConnectionUser {
  connectionReady(connection: Connection): void;
  connectionData(chunk: Buffer): void;
  /** Called once, with the phase that it ended in. No error means that the other side closed in good order. */
  connectionClosed(phase: ConnectionPhase, error: Error | undefined): void;
}

/** How many TLS sessions are kept, and how long each may be (our choice): 32 MB at the most. One is 1 to 5 KB, most of it the receiver's certificates. */
const MAX_SESSIONS = 4_096;
const MAX_SESSION_BYTES = 8 * 1024;

/**
 * Keeps the last TLS session of an origin; those renewed the longest ago are forgotten first. A new connection that
 * resumes one spares both sides the certificates: with short ones and P-256 a quarter of a handshake's CPU under Bun 1.4.4.
 */
export function keepSession(sessions: Map<string, Buffer>, origin: string, session: Buffer): void {
  if (session.length > MAX_SESSION_BYTES) return;
  sessions.delete(origin);
  sessions.set(origin, session);
  const [oldest = origin] = sessions.keys();
  if (sessions.size > MAX_SESSIONS) sessions.delete(oldest);
}

/** What all connections of one pool are made with. */
export interface Dialling {
  readonly context: SecureContext;
  readonly sessions: Map<string, Buffer>;
  readonly proxy: EgressProxy | undefined;
}

/** Where a connection goes: to one checked address, for one origin. */
export interface Route extends Dialling {
  readonly address: string;
  readonly target: WebhookTarget;
}

/** Why there is no tunnel. Of what the proxy wrote it says the status only. */
class ProxyRefusal extends Error {
  /** A gateway status is about the address that was asked for; anything else is about the proxy or us. */
  readonly isAboutAddress: boolean;

  constructor(reason: string, statusCode = 0) {
    super(reason);
    this.name = "ProxyRefusal";
    this.isAboutAddress = statusCode >= 502 && statusCode <= 504;
  }
}

/** One connection over a route. */
export class Connection implements Expiring {
  phase: ConnectionPhase;
  readonly bornMs = performance.now();
  /** Until when it may idle. */
  keptUntilMs = 0;
  /** Looks whether it idles for too long; undefined while no timer runs. */
  idleDeadline: Deadline | undefined;
  /** Undefined while it idles. What arrives then was not asked for, and ends the connection. */
  user: ConnectionUser | undefined;
  readonly origin: string;
  readonly #route: Route;
  #socket: Socket;
  readonly #onClosed: (connection: Connection) => void;

  constructor(route: Route, user: ConnectionUser, onClosed: (connection: Connection) => void) {
    const { proxy, address, target } = route;
    this.user = user;
    this.origin = target.origin;
    this.#route = route;
    this.#onClosed = onClosed;
    this.phase = proxy === undefined ? "connecting" : "tunnelling";
    const { host, port } = proxy ?? { host: address, port: target.port };
    this.#socket = connectTcp({ host, port });
    this.#socket.setNoDelay(true);
    this.#socket.on("connect", () =>
      proxy === undefined ? this.#connected() : this.#openTunnel(proxy),
    );
    this.#watch(this.#socket);
  }

  get isReachingProxy(): boolean {
    return this.phase === "tunnelling" && this.#socket.connecting;
  }

  write(message: string | Buffer): void {
    this.#socket.write(message);
  }

  /** False while a part of the request is unsent, which is so after an answer that came early. */
  get isDrained(): boolean {
    return this.#socket.writableLength === 0;
  }

  /**
   * Ends it if it idles for too long. The timer runs on while the connection is in use, because arming one for every
   * request costs more than looking again.
   */
  expire(): void {
    this.idleDeadline = undefined;
    if (this.user !== undefined) return;
    const leftMs = this.keptUntilMs - performance.now();
    if (leftMs > 0) this.idleDeadline = startDeadline(leftMs, this);
    else this.destroy();
  }

  /** Ends it at once and tells no user; a pending connect or handshake is given up too. */
  destroy(): void {
    this.user = undefined;
    this.#closed(undefined);
  }

  /**
   * Asks the proxy for the connection (RFC 9110, 9.3.6) by the checked address, never by name: a proxy that looked the
   * name up itself could be led to an address that nobody checked.
   */
  #openTunnel(proxy: EgressProxy): void {
    const socket = this.#socket;
    const answer = new ResponseParser(true);
    const read = (chunk: Buffer) => {
      answer.feed(chunk);
      if (answer.state === "head") return;
      socket.off("data", read);
      const refusal = refusalOf(answer);
      if (refusal === undefined) this.#connected();
      else this.#closed(refusal);
    };
    socket.on("data", read);
    socket.write(encodeConnect(proxy, this.#route));
  }

  /** The socket reaches the receiver: from here on its bytes are the receiver's. */
  #connected(): void {
    if (this.phase === "closed") return;
    const { target, sessions } = this.#route;
    if (target.secure) {
      this.phase = "handshaking";
      try {
        this.#socket = connectTls({ ...tlsOptions(this.#route), socket: this.#socket });
      } catch (error) {
        // It throws for a name that TLS refuses to send, for example.
        return this.#closed(error instanceof Error ? error : new Error(String(error)));
      }
      this.#socket.on("secureConnect", () => this.#ready());
      // This event comes only once the certificate was accepted (Bun 1.4.4): a refused one leaves nothing to resume.
      this.#socket.on("session", (session: Buffer) => keepSession(sessions, this.origin, session));
      this.#watch(this.#socket);
    }
    this.#socket.on("data", (chunk: Buffer) => this.#data(chunk));
    if (!target.secure) this.#ready();
  }

  #watch(socket: Socket): void {
    socket.on("error", (error) => this.#closed(error));
    // The receiver's half-close already ends the connection: it would not read another request.
    socket.on("end", () => this.#closed(undefined));
    socket.on("close", () => this.#closed(undefined));
  }

  #ready(): void {
    if (this.phase === "closed") return;
    this.phase = "open";
    this.user?.connectionReady(this);
  }

  /** What comes before the request was not asked for either. */
  #data(chunk: Buffer): void {
    if (this.user === undefined || this.phase !== "open") this.#closed(undefined);
    else this.user.connectionData(chunk);
  }

  #closed(error: Error | undefined): void {
    const { phase, user } = this;
    if (phase === "closed") return;
    this.phase = "closed";
    this.user = undefined;
    cancelDeadline(this.idleDeadline);
    this.#socket.destroy();
    this.#onClosed(this);
    user?.connectionClosed(phase, error);
  }
}

function encodeConnect(
  { authorization }: EgressProxy,
  { address, target }: Pick<Route, "address" | "target">,
): string {
  const host = address.includes(":") ? `[${address}]` : address;
  const authority = `${host}:${target.port}`;
  const credentials =
    authorization === undefined ? "" : `Proxy-Authorization: ${authorization}\r\n`;
  return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${credentials}\r\n`;
}

function refusalOf({ head, problem, hasExcess }: ResponseParser): ProxyRefusal | undefined {
  if (head === undefined)
    return new ProxyRefusal(problem.replace("the answer", "the proxy's answer"));
  const { statusCode } = head;
  if (statusCode >= 300)
    return new ProxyRefusal(`the proxy answered CONNECT with ${statusCode}`, statusCode);
  // Nothing was asked of the receiver yet, so what follows could only be mistaken for its answer.
  return hasExcess ? new ProxyRefusal("the proxy sent more than its answer to CONNECT") : undefined;
}

/** It asks for verification explicitly, so that no environment variable can switch that off. */
function tlsOptions({ address, target, context, sessions }: Route): ConnectionOptions {
  const session = sessions.get(target.origin);
  return {
    host: address,
    secureContext: context,
    rejectUnauthorized: true,
    ALPNProtocols: ["http/1.1"],
    // Without a server name the certificate is checked against the address itself (RFC 6066, 3).
    ...(target.isLiteral ? {} : { servername: target.host }),
    ...(session === undefined ? {} : { session }),
  };
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
