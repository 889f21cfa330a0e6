import { createServer as createTcp } from "node:net";
import { createServer as createTls } from "node:tls";
import type { Server, Socket } from "node:net";
import type { TLSSocket, TlsOptions } from "node:tls";

/** The reply to each complete request: bytes, nothing if empty, or a function that uses the socket. */
export type RawAnswer = string | Buffer | ((socket: Socket, request: string, nth: number) => void);

/** A receiver on a plain TCP or TLS socket. It can send any bytes at any time, also ones that are not HTTP. */
export interface RawReceiver {
  readonly port: number;
  /** The URL of the receiver; `https://` if it has TLS options. */
  readonly url: string;
  /** The whole text of every request, one character per byte. */
  readonly requests: readonly string[];
  readonly connections: ReadonlySet<Socket>;
  /** The number of connections so far. */
  readonly accepted: number;
  /** The server names (SNI) of the TLS connections; false for a connection without one. */
  readonly serverNames: readonly (string | false)[];
  /** One entry per TLS connection: whether it resumed a session. */
  readonly resumed: readonly boolean[];
  stop(): void;
}

export async function startRawReceiver(
  answer: RawAnswer,
  options: { address?: string; tls?: TlsOptions; port?: number } = {},
): Promise<RawReceiver> {
  const { address = "127.0.0.1", tls } = options;
  const requests: string[] = [];
  const connections = new Set<Socket>();
  const serverNames: (string | false)[] = [];
  const resumed: boolean[] = [];
  let accepted = 0;
  const respond =
    typeof answer === "function"
      ? answer
      : (socket: Socket) =>
          void socket.write(answer, typeof answer === "string" ? "latin1" : undefined);
  const serve = (socket: Socket | TLSSocket) => {
    accepted++;
    connections.add(socket);
    if ("servername" in socket) {
      serverNames.push(nameOf(socket.servername));
      resumed.push(socket.isSessionReused());
    }
    onRequests(socket, (request) => respond(socket, request, requests.push(request)));
    socket.on("error", () => {});
    socket.on("close", () => connections.delete(socket));
  };
  const server = tls === undefined ? createTcp(serve) : createTls(tls, serve);
  server.on("tlsClientError", () => {});
  const port = await listen(server, address, options.port);
  const host = address.includes(":") ? `[${address}]` : address;
  return {
    port,
    url: `${tls === undefined ? "http" : "https"}://${host}:${port}/hook`,
    requests,
    connections,
    serverNames,
    resumed,
    get accepted() {
      return accepted;
    },
    stop() {
      for (const socket of connections) socket.destroy();
      server.close();
    },
  };
}

function nameOf(servername: unknown): string | false {
  return typeof servername === "string" && servername !== "" ? servername : false;
}

/** Calls `told` with every request as soon as its body is complete. Requests need a Content-Length. */
function onRequests(socket: Socket, told: (request: string) => void): void {
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    const head = text.indexOf("\r\n\r\n");
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
    if (head === -1 || text.length < head + 4 + length) return;
    const request = text;
    text = "";
    told(request);
  });
}

export async function listen(server: Server, address = "127.0.0.1", port = 0): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("not listening");
  return bound.port;
}
