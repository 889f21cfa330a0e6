import { connect, createServer, type Socket } from "node:net";

import { listen } from "./raw-receiver.ts";

/** A TCP proxy on loopback between a client and a store, which behaves like a broken network. */
export interface TcpProxy {
  readonly port: number;
  /** The number of connections so far. */
  accepted: number;
  /** The port that new connections lead to. */
  target: number;
  /** Whether new connections are frozen from the start. */
  deaf: boolean;
  /** Replaces host and port of a URL by those of this proxy. */
  in(url: string): string;
  /** Freezes the open connections for ever: they stay open, but forward nothing. Later ones work. */
  freeze(): void;
  /** Freezes each open PostgreSQL connection in its next request: everything passes except the final Sync message. */
  freezeBeforeSync(): void;
  /**
   * Asked for each answer of PostgreSQL to a commit, or to a statement that commits by itself. If it returns true, the
   * connection is reset in place of the answer.
   */
  losesCommit: () => boolean;
  /** The number of PostgreSQL messages that still pass to clients. The next one resets its connection, and all later ones pass. */
  messagesLeft: number;
  /** Holds back all data for this time. */
  hang(ms: number): Promise<void>;
  /** Delays each chunk of data, for this time. */
  slow(delayMs: number, ms: number): Promise<void>;
  /** Resets every connection that is not frozen. */
  reset(): void;
  stop(): void;
}

/** The Sync message of the PostgreSQL protocol, which ends a request. */
const SYNC = Buffer.from("S\0\0\0\x04", "latin1");

/**
 * The end of an answer that tells of a commit: the completion of `commit`, or that of a statement that writes with the
 * server ready for the next transaction.
 */
const COMMITTED = /C.{4}COMMIT.|C.{4}(?:INSERT 0|UPDATE|DELETE|MERGE) \d+.Z.{4}I/s;

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  isFrozen: boolean;
  freezesBeforeSync: boolean;
  /** The begin of a message that has not arrived as a whole. */
  begun: Buffer;
}

/** Starts a proxy. `delayMs` delays the first bytes that a client sends. */
export async function startTcpProxy(
  port: number,
  { host = "127.0.0.1", delayMs = 0 } = {},
): Promise<TcpProxy> {
  const network = { delayMs: 0, hanging: Promise.resolve() };
  const pairs = new Set<Pair>();
  const server = createServer((client) => {
    proxy.accepted += 1;
    const upstream = connect({ host, port: proxy.target });
    const flags = { isFrozen: proxy.deaf, freezesBeforeSync: false };
    const pair: Pair = { client, upstream, ...flags, begun: Buffer.alloc(0) };
    pairs.add(pair);
    if (delayMs > 0) {
      client.pause();
      setTimeout(() => client.resume(), delayMs);
    }
    const forward = (from: Socket, to: Socket) => {
      let forwarded = Promise.resolve();
      const after = (work: () => void) => {
        forwarded = forwarded.then(async () => {
          if (network.delayMs > 0) await Bun.sleep(network.delayMs);
          await network.hanging;
          if (!pair.isFrozen) work();
        });
      };
      from.setNoDelay(true);
      from.on("data", (chunk: Buffer) =>
        after(() => {
          const isCommit = to === client && COMMITTED.test(chunk.toString("latin1"));
          if (isCommit && proxy.losesCommit()) resetPair(pair);
          else if (to === client && proxy.messagesLeft < Infinity) passMessages(proxy, pair, chunk);
          else pass(pair, to, chunk);
        }),
      );
      from.on("error", () => undefined);
      from.on("close", () => {
        after(() => void to.destroy());
        if (client.destroyed && upstream.destroyed) pairs.delete(pair);
      });
    };
    forward(client, upstream);
    forward(upstream, client);
  });
  const proxy: TcpProxy = {
    port: await listen(server),
    accepted: 0,
    target: port,
    deaf: false,
    losesCommit: () => false,
    messagesLeft: Infinity,
    in(url: string) {
      const through = new URL(url);
      through.hostname = "127.0.0.1";
      through.port = String(proxy.port);
      return through.href;
    },
    freeze() {
      for (const pair of pairs) pair.isFrozen = true;
    },
    freezeBeforeSync() {
      for (const pair of pairs) pair.freezesBeforeSync = true;
    },
    async hang(ms: number) {
      network.hanging = Bun.sleep(ms);
      await network.hanging;
    },
    async slow(chunkDelayMs: number, ms: number) {
      network.delayMs = chunkDelayMs;
      await Bun.sleep(ms);
      network.delayMs = 0;
    },
    reset() {
      for (const pair of pairs) if (!pair.isFrozen) resetPair(pair);
    },
    stop() {
      server.close();
      for (const { client, upstream } of pairs)
        for (const socket of [client, upstream]) socket.destroy();
    },
  };
  return proxy;
}

function resetPair({ client, upstream }: Pair): void {
  for (const socket of [client, upstream]) socket.resetAndDestroy();
}

function pass(pair: Pair, to: Socket, chunk: Buffer): void {
  const ends =
    pair.freezesBeforeSync && to === pair.upstream && chunk.subarray(-SYNC.length).equals(SYNC);
  to.write(ends ? chunk.subarray(0, -SYNC.length) : chunk);
  if (ends) pair.isFrozen = true;
}

/** The bytes of the type of a PostgreSQL message and of its length, which counts itself but not the type. */
const TYPE_BYTES = 1;
const LENGTH_BYTES = 4;

function passMessages(proxy: TcpProxy, pair: Pair, chunk: Buffer): void {
  let rest = Buffer.concat([pair.begun, chunk]);
  while (rest.length >= TYPE_BYTES + LENGTH_BYTES) {
    const end = TYPE_BYTES + rest.readInt32BE(TYPE_BYTES);
    if (rest.length < end) break;
    if (proxy.messagesLeft === 0) {
      proxy.messagesLeft = Infinity;
      resetPair(pair);
      return;
    }
    proxy.messagesLeft--;
    pair.client.write(rest.subarray(0, end));
    rest = rest.subarray(end);
  }
  pair.begun = rest;
}

/** Starts a proxy before the store of a URL. */
export function proxyBefore(
  url: string,
  options: { readonly delayMs?: number } = {},
): Promise<TcpProxy> {
  const { hostname, port } = new URL(url);
  return startTcpProxy(Number(port) || 5432, {
    host: hostname.replace(/^\[|\]$/g, ""),
    ...options,
  });
}
