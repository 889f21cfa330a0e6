import { connect, createServer, type Socket } from "node:net";

import { listen } from "./raw-receiver.ts";

/** A network between a client and a store, which can go away without a word. */
export interface TcpProxy {
  readonly port: number;
  /** `url` with this proxy in place of its host. */
  in(url: string): string;
  /** Connections that are open now forward nothing any more, and stay open; new ones pass. */
  freeze(): void;
  /** How many there were. */
  readonly accepted: number;
  stop(): void;
}

async function startTcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let accepted = 0;
  const server = createServer((client) => {
    accepted++;
    const upstream = connect(target);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    client.on("data", (chunk) => pairs.has(pair) && upstream.write(chunk));
    upstream.on("data", (chunk) => pairs.has(pair) && client.write(chunk));
    for (const [one, other] of [pair, [upstream, client] as const]) {
      one.on("error", () => {});
      one.on("close", () => pairs.delete(pair) && other.destroy());
    }
    sockets.add(client);
    sockets.add(upstream);
  });
  const sockets = new Set<Socket>();
  const port = await listen(server, "127.0.0.1");
  return {
    port,
    in(url) {
      const through = new URL(url);
      through.hostname = "127.0.0.1";
      through.port = String(port);
      return through.href;
    },
    freeze: () => pairs.clear(),
    get accepted() {
      return accepted;
    },
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** In front of the store that a URL names. */
export function proxyBefore(url: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(url);
  return startTcpProxy({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) || 5432 });
}
