import { connect, createServer, type Socket } from "node:net";

import { listen } from "./raw-receiver.ts";

/** A TCP proxy on loopback that can freeze its connections: they stay open, but forward no more data. */
export interface FreezingProxy {
  readonly port: number;
  /** The number of connections so far. */
  readonly accepted: number;
  /** The port that new connections lead to. */
  target: number;
  /** Whether new connections are frozen from the start. */
  deaf: boolean;
  /** Freezes the connections that are open now. Later ones work. */
  freeze(): void;
  stop(): void;
}

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  frozen: boolean;
}

export async function startFreezingProxy(port: number): Promise<FreezingProxy> {
  const pairs = new Set<Pair>();
  const server = createServer((client) => {
    proxy.accepted += 1;
    const upstream = connect({ host: "127.0.0.1", port: proxy.target });
    const pair: Pair = { client, upstream, frozen: proxy.deaf };
    pairs.add(pair);
    join(pair, client, upstream);
    join(pair, upstream, client);
    client.on("close", () => pairs.delete(pair));
  });
  const proxy = {
    port: await listen(server, "127.0.0.1"),
    accepted: 0,
    target: port,
    deaf: false,
    freeze() {
      for (const pair of pairs) pair.frozen = true;
    },
    stop() {
      for (const { client, upstream } of pairs) {
        client.destroy();
        upstream.destroy();
      }
      server.close();
    },
  };
  return proxy;
}

function join(pair: Pair, from: Socket, to: Socket): void {
  from.on("data", (chunk: Buffer) => {
    if (!pair.frozen) to.write(chunk);
  });
  from.on("error", () => {});
  from.on("close", () => {
    if (!pair.frozen) to.destroy();
  });
}
