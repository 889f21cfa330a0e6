import { createServer as createTcp } from "node:net";
import { createServer as createTls } from "node:tls";
import type { Server, Socket } from "node:net";
import type { TLSSocket, TlsOptions } from "node:tls";

/** What a raw receiver writes to each complete request; nothing at all, if it is empty. */
export type RawAnswer = string | Buffer | ((socket: Socket, request: string, nth: number) => void);

/** A receiver below HTTP: it says what it likes, when it likes. */
export interface RawReceiver {
  readonly port: number;
  /** `http://` or `https://`, its address and port, and a path. */
  readonly url: string;
  /** The whole text of every request, one character per byte. */
  readonly requests: readonly string[];
  readonly connections: ReadonlySet<Socket>;
  /** How many connections there were. */
  readonly accepted: number;
  /** The names asked for in TLS; false where there was none. */
  readonly serverNames: readonly (string | false)[];
  /** Whether each TLS connection resumed a session. */
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

/** Tells of every request with a length once it is whole. */
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
