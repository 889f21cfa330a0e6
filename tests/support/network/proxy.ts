import { connect, createServer, type Socket } from "node:net";
import { listen } from "./raw-receiver.ts";

/** Chooses the reply to a CONNECT: text, a function that uses the socket, or undefined for a working tunnel. */
export type ProxyAnswer = (
  authority: string,
  nth: number,
) => string | ((client: Socket) => void) | undefined;

/** An egress proxy on loopback that supports only CONNECT. */
export interface TestProxy {
  readonly port: number;
  /** The whole text of every CONNECT request. */
  readonly requests: readonly string[];
  /** The `host:port` of every CONNECT request. */
  readonly authorities: readonly string[];
  readonly connections: ReadonlySet<Socket>;
  stop(): void;
}

const ESTABLISHED = "HTTP/1.1 200 Connection established\r\n\r\n";

export async function startProxy(
  answer: ProxyAnswer = () => undefined,
  address = "127.0.0.1",
): Promise<TestProxy> {
  const requests: string[] = [];
  const authorities: string[] = [];
  const connections = new Set<Socket>();
  const server = createServer((client) => {
    connections.add(client);
    client.on("error", () => {});
    client.on("close", () => connections.delete(client));
    client.once("data", (chunk: Buffer) => {
      const request = chunk.toString("latin1");
      const authority = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(request)?.[1] ?? "";
      requests.push(request);
      const said = answer(authority, authorities.push(authority));
      if (said === undefined) tunnel(client, authority);
      else if (typeof said === "string") client.write(said, "latin1");
      else said(client);
    });
  });
  const port = await listen(server, address);
  return {
    port,
    requests,
    authorities,
    connections,
    stop() {
      for (const client of connections) client.destroy();
      server.close();
    },
  };
}

/** Connects to `host:port` and forwards both directions; replies 502 if the connection fails, as proxies do. */
export function tunnel(client: Socket, authority: string, established = ESTABLISHED): void {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+)):(\d+)$/.exec(authority) ?? [];
  const upstream = connect({ host: bracketed ?? plain ?? "", port: Number(port) });
  let isOpen = false;
  upstream.on("connect", () => {
    isOpen = true;
    client.write(established);
    client.pipe(upstream).pipe(client);
  });
  upstream.on("error", () => {
    if (isOpen) client.destroy();
    else client.end("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
  });
  upstream.on("close", () => client.destroy());
  client.on("close", () => upstream.destroy());
}
