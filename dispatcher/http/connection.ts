import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Socket } from "node:net";
import type { ConnectionOptions, SecureContext, TLSSocket } from "node:tls";
import type { EgressProxy } from "../../src/lib/egress-proxy.ts";
import type { WebhookTarget } from "../../src/lib/egress.ts";
import { HeadReader } from "./response-head.ts";
import { openTunnel, type ProxyRefusal } from "./tunnel.ts";

/** `tunnelling` is everything up to the proxy's consent; a connection without a proxy begins at `connecting`. */
export type ConnectionPhase = "tunnelling" | "connecting" | "handshaking" | "open" | "closed";

/** The one who has a connection in use. */
export interface ConnectionUser {
  connectionReady(connection: Connection): void;
  connectionData(chunk: Buffer, heads: HeadReader): void;
  /** Called once, with the phase that it ended in. No error means that the other side closed in good order. */
  connectionClosed(phase: ConnectionPhase, error: Error | undefined): void;
}

/** How much the kept TLS sessions may take together (our choice). One is 1 to 5 KB, most of it the receiver's certificates. */
const MAX_SESSION_BYTES = 32 * 1024 * 1024;

/**
 * The last TLS session of each origin. A new connection that resumes one spares both sides the
 * certificates: with short ones and P-256 a quarter of a handshake's CPU under Bun 1.4.4.
 */
export class SessionCache {
  readonly #sessions = new Map<string, Buffer>();
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number = MAX_SESSION_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get(origin: string): Buffer | undefined {
    return this.#sessions.get(origin);
  }

  /** An origin that renews its session moves to the end; those renewed the longest ago are forgotten first. */
  set(origin: string, session: Buffer): void {
    this.#forget(origin);
    this.#sessions.set(origin, session);
    this.#bytes += session.length;
    for (const oldest of this.#sessions.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#forget(oldest);
    }
  }

  #forget(origin: string): void {
    this.#bytes -= this.#sessions.get(origin)?.length ?? 0;
    this.#sessions.delete(origin);
  }
}

/** What all connections of one pool are made with. */
export interface Dialling {
  readonly context: SecureContext;
  readonly sessions: SessionCache;
  readonly proxy: EgressProxy | undefined;
}

/** Where a connection goes: to one checked address, for one origin. */
export interface Route extends Dialling {
  readonly address: string;
  readonly target: WebhookTarget;
}

/** One connection over a route. */
export class Connection {
  phase: ConnectionPhase;
  readonly bornMs: number;
  /** When its last answer ended. */
  idleSinceMs = 0;
  /** How long its receiver lets it idle, as far as we dare. */
  keptForMs = Number.POSITIVE_INFINITY;
  /** Undefined while it idles. What arrives then was not asked for, and ends the connection. */
  user: ConnectionUser | undefined;
  readonly origin: string;
  readonly #heads = new HeadReader();
  readonly #route: Route;
  #socket: Socket;
  #onClosed: (connection: Connection) => void;

  constructor(route: Route, bornMs: number, onClosed: (connection: Connection) => void) {
    const { proxy, address, target } = route;
    this.bornMs = bornMs;
    this.origin = target.origin;
    this.#route = route;
    this.#onClosed = onClosed;
    if (proxy === undefined) {
      this.phase = "connecting";
      this.#socket = target.secure
        ? connectTls({ ...tlsOptions(route), port: target.port })
        : connectTcp({ host: address, port: target.port });
      this.#socket.on("connect", () => this.#connected());
      this.#carry(this.#socket);
    } else {
      this.phase = "tunnelling";
      this.#socket = connectTcp({ host: proxy.host, port: proxy.port });
      const end = { proxy, address, port: target.port };
      openTunnel(this.#socket, end, (refusal) => this.#tunnelled(refusal));
    }
    this.#socket.setNoDelay(true);
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

  /** Ends it at once and tells no user; a pending connect or handshake is given up too. */
  destroy(): void {
    this.user = undefined;
    this.#closed(undefined);
  }

  /** Ends it at once as if the receiver had, so that its user hears of it. */
  close(): void {
    this.#closed(new Error("closed on our side"));
  }

  #tunnelled(refusal: ProxyRefusal | undefined): void {
    if (refusal !== undefined) return this.#closed(refusal);
    if (this.phase !== "tunnelling") return;
    if (!this.#route.target.secure) {
      this.#carry(this.#socket);
      return this.#ready();
    }
    this.phase = "handshaking";
    try {
      this.#socket = connectTls({ ...tlsOptions(this.#route), socket: this.#socket });
    } catch (error) {
      // It throws for a name that TLS refuses to send, for example.
      return this.#closed(error instanceof Error ? error : new Error(String(error)));
    }
    this.#carry(this.#socket);
    this.#watch(this.#socket);
  }

  #watch(socket: Socket): void {
    socket.on("error", (error) => this.#closed(error));
    // The receiver's half-close already ends the connection: it would not read another request.
    socket.on("end", () => this.#closed(undefined));
    socket.on("close", () => this.#closed(undefined));
  }

  /** Listens to a socket whose bytes are the receiver's, at the latest after the handshake. */
  #carry(socket: Socket | TLSSocket): void {
    socket.on("data", (chunk: Buffer) => this.#data(chunk));
    if (!this.#route.target.secure) return;
    socket.on("secureConnect", () => this.#ready());
    // This event comes only once the certificate was accepted (Bun 1.4.4): a refused one leaves nothing to resume.
    socket.on("session", (session: Buffer) => this.#route.sessions.set(this.origin, session));
  }

  #connected(): void {
    if (this.phase !== "connecting") return;
    if (this.#route.target.secure) this.phase = "handshaking";
    else this.#ready();
  }

  #ready(): void {
    if (this.phase === "closed") return;
    this.phase = "open";
    this.user?.connectionReady(this);
  }

  #data(chunk: Buffer): void {
    if (this.user === undefined) this.destroy();
    else this.user.connectionData(chunk, this.#heads);
  }

  #closed(error: Error | undefined): void {
    const { phase, user } = this;
    if (phase === "closed") return;
    this.phase = "closed";
    this.user = undefined;
    this.#socket.destroy();
    this.#onClosed(this);
    user?.connectionClosed(phase, error);
  }
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
