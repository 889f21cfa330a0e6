import { connect as connectTcp, type Socket } from "node:net";
import {
  connect as connectTls,
  type ConnectionOptions,
  type SecureContext,
  TLSSocket,
} from "node:tls";

import { certificateEnd, checkServerIdentity } from "../../src/lib/certificates.ts";
import { type Deadline, type Expiring, startDeadline } from "../../src/lib/waiter.ts";
import type { EgressProxy } from "../../src/lib/egress-proxy.ts";
import type { WebhookTarget } from "../../src/lib/egress.ts";
import { ResponseParser } from "./message.ts";

/**
 * The phases of a connection. `reaching` lasts until the proxy is connected, `tunnelling` until it has accepted
 * CONNECT. Without a proxy a connection begins at `connecting`.
 */
export type ConnectionPhase =
  | "reaching"
  | "tunnelling"
  | "connecting"
  | "handshaking"
  | "open"
  | "closed";

/** The request that uses a connection. */
export interface ConnectionUser {
  connectionReady(connection: Connection): void;
  connectionData(chunk: Buffer): void;
  /** Called once, with the phase in which the connection ended. No error means an orderly close by the other side. */
  connectionClosed(phase: ConnectionPhase, error: Error | undefined): void;
}

/**
 * The most TLS sessions that are kept, and the largest size of one (our choice): 32 MB in all. A session has 1 to 5 KB,
 * most of it the certificates of the receiver.
 */
const MAX_SESSIONS = 4_096;
const MAX_SESSION_BYTES = 8 * 1024;

/**
 * Stores the last TLS session of an origin, and forgets the sessions that were renewed the longest ago. A connection
 * that resumes a session exchanges no certificates. With short P-256 certificates that saves a quarter of the CPU time
 * of a handshake under Bun 1.4.4.
 */
export function keepSession(sessions: Map<string, Buffer>, origin: string, session: Buffer): void {
  if (session.length > MAX_SESSION_BYTES) return;
  sessions.delete(origin);
  sessions.set(origin, session);
  const [oldest = origin] = sessions.keys();
  if (sessions.size > MAX_SESSIONS) sessions.delete(oldest);
}

/** The settings that all connections of a pool share. */
export interface Dialling {
  readonly context: SecureContext;
  readonly sessions: Map<string, Buffer>;
  readonly proxy: EgressProxy | undefined;
}

/** The checked address and the origin of one connection. */
export interface Route extends Dialling {
  readonly address: string;
  readonly target: WebhookTarget;
}

/** The reason why the proxy opened no tunnel. It contains only the status of the response of the proxy. */
export class ProxyRefusal extends Error {
  /** True for a gateway status (502 to 504), which is about the receiver. */
  readonly isAboutAddress: boolean;
  /** True if the proxy does not accept our credentials (407). It then refuses every destination. */
  readonly isAboutUs: boolean;

  constructor(reason: string, statusCode = 0) {
    super(reason);
    this.name = "ProxyRefusal";
    this.isAboutAddress = statusCode >= 502 && statusCode <= 504;
    this.isAboutUs = statusCode === 407;
  }
}

/** One TCP or TLS connection to the address of a route. */
export class Connection implements Expiring {
  phase: ConnectionPhase;
  readonly bornMs = performance.now();
  /** The time, by the monotonic clock, until which the connection may idle. */
  keptUntilMs = 0;
  /** The timer that closes an idle connection; undefined while no timer runs. */
  idleDeadline: Deadline | undefined;
  /**
   * The current request; undefined while the connection is idle. Data that arrives while it is idle closes the
   * connection.
   */
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
    this.phase = proxy === undefined ? "connecting" : "reaching";
    const { host, port } = proxy ?? { host: address, port: target.port };
    this.#socket = connectTcp({ host, port });
    this.#socket.setNoDelay(true);
    this.#socket.on("connect", () =>
      proxy === undefined ? this.#connected() : this.#openTunnel(proxy),
    );
    this.#watch(this.#socket);
  }

  write(message: string | Uint8Array): void {
    this.#socket.write(message);
  }

  /** Whether the whole request was sent. If a response comes early, a part of the request is still unsent. */
  get isDrained(): boolean {
    return this.#socket.writableLength === 0;
  }

  /** The end of the validity of the receiver's certificate; undefined without TLS. */
  get certificateEndsAt(): Date | undefined {
    const socket = this.#socket;
    return socket instanceof TLSSocket ? certificateEnd(socket.getPeerCertificate()) : undefined;
  }

  /**
   * Closes the connection if it has been idle for too long. The timer runs on while the connection is in use, because
   * a new timer for each request costs more than another check.
   */
  expire(): void {
    this.idleDeadline = undefined;
    if (this.user !== undefined) return;
    const leftMs = this.keptUntilMs - performance.now();
    if (leftMs > 0) this.idleDeadline = startDeadline(leftMs, this);
    else this.destroy();
  }

  /**
   * Closes the connection without calling `connectionClosed` of the current request. A pending connect or handshake
   * is given up, too.
   */
  destroy(): void {
    this.user = undefined;
    this.#closed(undefined);
  }

  /**
   * Sends CONNECT (RFC 9110, 9.3.6) with the checked address and never with the name: a proxy that resolves the name
   * itself could be led to an unchecked address.
   */
  #openTunnel(proxy: EgressProxy): void {
    if (this.phase === "closed") return;
    this.phase = "tunnelling";
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

  /** Notes that the socket reaches the receiver: from here on all received bytes come from the receiver. */
  #connected(): void {
    if (this.phase === "closed") return;
    const { target, sessions } = this.#route;
    if (target.secure) {
      this.phase = "handshaking";
      try {
        this.#socket = connectTls({ ...tlsOptions(this.#route), socket: this.#socket });
      } catch (error) {
        // TLS throws this error, for example, for a name that it cannot send.
        return this.#closed(error instanceof Error ? error : new Error(String(error)));
      }
      this.#socket.on("secureConnect", () => this.#ready());
      // The `session` event comes only after the certificate was accepted (Bun 1.4.4), so a rejected one leaves no
      // session.
      this.#socket.on("session", (session: Buffer) => keepSession(sessions, this.origin, session));
      this.#watch(this.#socket);
    }
    this.#socket.on("data", (chunk: Buffer) => this.#data(chunk));
    if (!target.secure) this.#ready();
  }

  #watch(socket: Socket): void {
    socket.on("error", (error) => this.#closed(error));
    // A half-close by the receiver ends the connection, because the receiver would not read another request.
    socket.on("end", () => this.#closed(undefined));
    socket.on("close", () => this.#closed(undefined));
  }

  #ready(): void {
    if (this.phase === "closed") return;
    this.phase = "open";
    this.user?.connectionReady(this);
  }

  /** Passes received data to the current request. Data that arrives without a request closes the connection. */
  #data(chunk: Buffer): void {
    if (this.user === undefined || this.phase !== "open") this.#closed(undefined);
    else this.user.connectionData(chunk);
  }

  #closed(error: Error | undefined): void {
    const { phase, user } = this;
    if (phase === "closed") return;
    this.phase = "closed";
    this.user = undefined;
    clearTimeout(this.idleDeadline);
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
    return new ProxyRefusal(problem.replace("the response", "the proxy's response"));
  const { statusCode } = head;
  if (statusCode >= 300)
    return new ProxyRefusal(`the proxy answered CONNECT with ${statusCode}`, statusCode);
  // Bytes after the response to CONNECT are refused: nothing was sent to the receiver yet, so they could only be
  // mistaken for its response.
  return hasExcess
    ? new ProxyRefusal("the proxy sent more than its response to CONNECT")
    : undefined;
}

/** Requires certificate verification explicitly, so that no environment variable can disable it. */
function tlsOptions({ address, target, context, sessions }: Route): ConnectionOptions {
  const session = sessions.get(target.origin);
  return {
    host: address,
    secureContext: context,
    rejectUnauthorized: true,
    checkServerIdentity,
    ALPNProtocols: ["http/1.1"],
    // TLS checks the certificate against the address if there is no server name (RFC 6066, 3).
    ...(target.isLiteral ? {} : { servername: target.host }),
    ...(session === undefined ? {} : { session }),
  };
}
