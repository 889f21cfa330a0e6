import { connect, createServer, type Socket } from "node:net";

import { listen } from "./raw-receiver.ts";

/** A TCP proxy between a client and a store. It can stop forwarding without closing, as a broken network does. */
export interface TcpProxy {
  readonly port: number;
  /** Replaces host and port of a URL by those of this proxy. */
  in(url: string): string;
  /** Freezes all open connections: they stay open, but forward nothing. New connections work. */
  freeze(): void;
  /** Freezes each open PostgreSQL connection in its next request: everything passes except the final Sync message. */
  freezeBeforeSync(): void;
  /** The number of connections so far. */
  readonly accepted: number;
  stop(): void;
}

/** The Sync message of the PostgreSQL protocol, which ends a request. */
const SYNC = Buffer.from("S\0\0\0\x04", "latin1");

interface Target {
  readonly host: string;
  readonly port: number;
  /** The delay of the first bytes that a client sends. */
  readonly delayMs: number;
}

async function startTcpProxy({ delayMs, ...target }: Target): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let cut: ReadonlySet<readonly [Socket, Socket]> = new Set();
  let accepted = 0;
  const server = createServer((client) => {
    accepted++;
    const upstream = connect(target);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    if (delayMs > 0) {
      client.pause();
      setTimeout(() => client.resume(), delayMs);
    }
    client.on("data", (chunk: Buffer) => {
      if (!pairs.has(pair)) return;
      const isCut = cut.has(pair) && chunk.subarray(-SYNC.length).equals(SYNC);
      upstream.write(isCut ? chunk.subarray(0, -SYNC.length) : chunk);
      if (isCut) pairs.delete(pair);
    });
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
    freezeBeforeSync: () => void (cut = new Set(pairs)),
    get accepted() {
      return accepted;
    },
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Starts a proxy before the store of a URL. */
export function proxyBefore(url: string, { delayMs = 0 } = {}): Promise<TcpProxy> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  return startTcpProxy({ host, port: Number(port) || 5432, delayMs });
}
