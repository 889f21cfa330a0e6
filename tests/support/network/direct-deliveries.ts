import { afterEach } from "bun:test";

import { createDeliver } from "../../../dispatcher/delivery/deliver.ts";
import { HttpClient } from "../../../dispatcher/http/client.ts";
import type { HttpClientOptions } from "../../../dispatcher/http/pool.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { parseNetworks } from "../../../src/lib/egress.ts";
import type { Lookup } from "../../../src/lib/name-resolver.ts";
import { type ProxyAnswer, startProxy } from "./proxy.ts";
import { type RawAnswer, startRawReceiver } from "./raw-receiver.ts";

export const LOOPBACK = { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.0/8,::1/128") };

/** A response that keeps its connection. */
export const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/**
 * Delivers through the HTTP client, without a dispatcher. The clients, receivers and proxies that a test starts here end
 * after it.
 */
export function directDeliveries(defaults: Partial<HttpClientOptions> = {}, address = "127.0.0.1") {
  const cleanups: (() => unknown)[] = [];
  afterEach(() => {
    for (const cleanup of cleanups.splice(0)) cleanup();
  });
  const ending = <T extends { stop(): unknown }>(one: T): T => {
    cleanups.push(() => one.stop());
    return one;
  };
  return {
    /** Runs `cleanup` after the test. */
    atEnd: (cleanup: () => unknown) => void cleanups.push(cleanup),
    start(options: Partial<HttpClientOptions> = {}) {
      const limits = { policy: LOOPBACK, timeoutMs: 60_000, bodyMs: 60_000 };
      const client = new HttpClient({ ...limits, ...defaults, ...options });
      cleanups.push(() => client.close());
      return { client, deliver: createDeliver({ clock: systemClock, client }) };
    },
    receive: async (answer: RawAnswer = OK, options: Parameters<typeof startRawReceiver>[1] = {}) =>
      ending(await startRawReceiver(answer, { address, ...options })),
    proxied: async (answer?: ProxyAnswer) => ending(await startProxy(answer)),
  };
}

export function message(url: string, body: string | Uint8Array = "{}") {
  return { url, headers: { "Content-Type": "application/json" }, body };
}

/** A look-up that finds these addresses for every name. */
export function giving(...addresses: string[]): Lookup {
  return async () => addresses;
}
