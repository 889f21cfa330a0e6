import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Socket } from "node:net";
import type { SecureContext } from "node:tls";
import type { WebhookTarget } from "../../src/lib/egress.ts";

export type ConnectionPhase = "connecting" | "handshaking" | "open" | "closed";

/** Whoever has a connection in use. */
export interface ConnectionUser {
  connectionReady(connection: Connection): void;
  connectionData(chunk: Buffer): void;
  /** Called once, with the phase it ended in; no error means that the receiver closed in good order. */
  connectionClosed(phase: ConnectionPhase, error: Error | undefined): void;
}

/** One connection to one checked address, for one origin. */
export class Connection {
  phase: ConnectionPhase = "connecting";
  readonly bornMs: number;
  /** When its last answer ended. */
  idleSinceMs = 0;
  /** Nobody while it idles: what arrives then was not asked for, and ends it. */
  user: ConnectionUser | undefined;
  readonly origin: string;
  #socket: Socket;
  #onClosed: (connection: Connection) => void;

  constructor(
    socket: Socket,
    target: WebhookTarget,
    bornMs: number,
    onClosed: (connection: Connection) => void,
  ) {
    this.bornMs = bornMs;
    this.origin = target.origin;
    this.#socket = socket;
    this.#onClosed = onClosed;
    socket.setNoDelay(true);
    socket.on("connect", () => this.#connected(target.secure));
    if (target.secure) socket.on("secureConnect", () => this.#ready());
    socket.on("data", (chunk: Buffer) => this.#data(chunk));
    socket.on("error", (error) => this.#closed(error));
    // The receiver's half-close already ends the connection: it would not read another request.
    socket.on("end", () => this.#closed(undefined));
    socket.on("close", () => this.#closed(undefined));
  }

  write(message: string | Buffer): void {
    this.#socket.write(message);
  }

  /** False while a part of the request is unsent, as after an answer that came early. */
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

  #connected(secure: boolean): void {
    if (this.phase !== "connecting") return;
    if (secure) this.phase = "handshaking";
    else this.#ready();
  }

  #ready(): void {
    if (this.phase === "closed") return;
    this.phase = "open";
    this.user?.connectionReady(this);
  }

  #data(chunk: Buffer): void {
    if (this.user === undefined) this.destroy();
    else this.user.connectionData(chunk);
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

/**
 * The only place that opens a socket, always to an address that was checked. An egress proxy would be
 * dialled here: connect to the proxy, `CONNECT address:port`, then TLS over that socket.
 */
export function openSocket(address: string, target: WebhookTarget, context: SecureContext): Socket {
  if (!target.secure) return connectTcp({ host: address, port: target.port });
  const options = { host: address, port: target.port, secureContext: context, ...VERIFIED };
  // Without a server name the certificate is checked against the address itself (RFC 6066, 3).
  if (target.isLiteral) return connectTls(options);
  return connectTls({ ...options, servername: target.host });
}

/** Said explicitly, so that no environment variable can switch it off. */
const VERIFIED = { rejectUnauthorized: true, ALPNProtocols: ["http/1.1"] };
