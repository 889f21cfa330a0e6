import { createConnection, createServer, type Socket } from "node:net";

/** A proxy between the product and a store that simulates network faults. */
export interface TcpProxy {
  readonly port: number;
  /** Silently stops forwarding on the present connections for ever; new ones work. */
  halfOpen(): void;
  /** Holds back all data for this time, then continues. */
  hang(ms: number): Promise<void>;
  /** Delays each chunk of data, for this time. */
  slow(delayMs: number, ms: number): Promise<void>;
  /** Resets every connection. */
  reset(): void;
  stop(): void;
}

interface Pair {
  readonly sockets: readonly [Socket, Socket];
  isDead: boolean;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  const network = { delayMs: 0, hanging: Promise.resolve() };
  const server = createServer((client) => {
    const upstream = createConnection({ host: "127.0.0.1", port: targetPort });
    const pair: Pair = { sockets: [client, upstream], isDead: false };
    pairs.add(pair);
    const end = () => {
      if (pair.isDead) return;
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    join(pair, [client, upstream], { network, end });
    join(pair, [upstream, client], { network, end });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  const close = (pair: Pair) => {
    for (const socket of pair.sockets) socket.resetAndDestroy();
    pairs.delete(pair);
  };
  return {
    port: address.port,
    halfOpen() {
      for (const pair of pairs) pair.isDead = true;
    },
    async hang(ms) {
      network.hanging = Bun.sleep(ms);
      await network.hanging;
    },
    async slow(delayMs, ms) {
      network.delayMs = delayMs;
      await Bun.sleep(ms);
      network.delayMs = 0;
    },
    reset() {
      for (const pair of pairs) if (!pair.isDead) close(pair);
    },
    stop() {
      server.close();
      for (const pair of pairs) close(pair);
    },
  };
}

interface Path {
  readonly network: { readonly delayMs: number; readonly hanging: Promise<void> };
  readonly end: () => void;
}

/** Forwards one direction, chunk by chunk, subject to the simulated network. */
function join(pair: Pair, [from, to]: readonly [Socket, Socket], { network, end }: Path): void {
  let forwarded = Promise.resolve();
  const after = (work: () => void) => {
    forwarded = forwarded.then(async () => {
      if (network.delayMs > 0) await Bun.sleep(network.delayMs);
      await network.hanging;
      if (!pair.isDead) work();
    });
  };
  from.setNoDelay(true);
  from.on("data", (chunk: Buffer) => after(() => void to.write(chunk)));
  from.on("error", () => undefined);
  from.on("close", () => after(end));
}
