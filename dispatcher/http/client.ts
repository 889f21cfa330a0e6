import type { EgressPolicy, WebhookTarget } from "../../src/lib/egress.ts";
import { systemLookup } from "../../src/lib/name-resolver.ts";
import { encodeRequest } from "./encode.ts";
import { Exchange } from "./exchange.ts";
import type { ExchangeDeps, ExchangeOptions, ExchangeResult, Leave } from "./exchange.ts";
import { ConnectionPool, type PoolOptions } from "./pool.ts";

/** What a client does unless it is told otherwise. */
const DEFAULTS: ExchangeOptions & PoolOptions = {
  lookup: systemLookup,
  // Contract 7.10: the limit of look-up, connection, TLS, request and response headers together.
  timeoutMs: 15_000,
  // Contract 7.5: what the body may take after that.
  bodyMs: 2_000,
  // Our choice: how long one address of several is waited for before the next is tried.
  addressMs: 3_000,
  // Contract 7.10: many receivers close at 5 s.
  idleMs: 4_000,
  // Our choice: addresses are checked when a connection is made, and one that is kept busy for ever would neither follow a
  // name that moved nor be checked again.
  maxConnectionAgeMs: 60_000,
  // Our choice: each is a descriptor, here and there.
  maxIdle: 1_024,
  ca: [],
  proxy: undefined,
};

export type HttpClientOptions = { readonly policy: EgressPolicy } & Partial<typeof DEFAULTS>;

/** Speaks HTTP/1.1 over connections to checked addresses. The caller bounds how many requests run at once. */
export class HttpClient {
  readonly policy: EgressPolicy;
  readonly #pool: ConnectionPool;
  readonly #deps: ExchangeDeps;

  constructor(options: HttpClientOptions) {
    this.policy = options.policy;
    const settings = { ...DEFAULTS, ...options };
    this.#pool = new ConnectionPool(settings);
    this.#deps = { ...settings, pool: this.#pool };
  }

  /** Throws for headers that cannot be sent; whatever the receiver does is in the result. */
  post(
    target: WebhookTarget,
    message: { headers: Readonly<Record<string, string>>; body: string | Uint8Array },
    leave: Leave = {},
  ): Promise<ExchangeResult> {
    const encoded = encodeRequest(target, message.headers, message.body);
    return new Exchange(this.#deps, { target, message: encoded }, leave).run();
  }

  counts(): { open: number; idle: number } {
    return this.#pool.counts();
  }

  /** Ends every connection, for good; requests still under way end as `aborted`. */
  close(): void {
    this.#pool.close();
  }
}
