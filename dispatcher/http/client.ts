import type { EgressProxy } from "../../src/lib/egress-proxy.ts";
import type { EgressPolicy, WebhookTarget } from "../../src/lib/egress.ts";
import { systemLookup, type Lookup } from "../../src/lib/name-resolver.ts";
import { AbortWatch } from "./abort-watch.ts";
import { Exchange } from "./exchange.ts";
import type { ExchangeDeps, ExchangeResult, Leave, WireRequest } from "./exchange.ts";
import { ConnectionPool, IDLE_MS, MAX_CONNECTION_AGE_MS, MAX_IDLE } from "./pool.ts";
import { encodeRequest } from "./encode.ts";

/** How long look-up, connection, TLS, request and answer headers may take together (contract 7.10). */
const DELIVERY_TIMEOUT_MS = 15_000;

/** How long the body is read after that, at most (contract 7.5). */
const BODY_TIMEOUT_MS = 2000;

/** How long one address of several is waited for before the next is tried (our choice). */
const ADDRESS_TIMEOUT_MS = 3000;

export interface HttpClientOptions {
  readonly policy: EgressPolicy;
  readonly lookup?: Lookup;
  /** PEM certificates trusted besides the system's. */
  readonly ca?: readonly string[];
  /** Names are looked up and addresses checked here all the same: the proxy is told the checked address. */
  readonly proxy?: EgressProxy | undefined;
  readonly timeoutMs?: number;
  readonly bodyMs?: number;
  readonly addressMs?: number;
  readonly idleMs?: number;
  readonly maxConnectionAgeMs?: number;
  /** How many connections may idle, over all receivers. */
  readonly maxIdle?: number;
}

/** Speaks HTTP/1.1 over connections to checked addresses. The caller bounds how many requests run at once. */
export class HttpClient {
  readonly policy: EgressPolicy;
  readonly #pool: ConnectionPool;
  readonly #deps: ExchangeDeps;

  constructor(options: HttpClientOptions) {
    this.policy = options.policy;
    this.#pool = new ConnectionPool({
      idleMs: options.idleMs ?? IDLE_MS,
      maxAgeMs: options.maxConnectionAgeMs ?? MAX_CONNECTION_AGE_MS,
      maxIdle: options.maxIdle ?? MAX_IDLE,
      monotonicMs: () => performance.now(),
      ca: options.ca ?? [],
      proxy: options.proxy,
    });
    this.#deps = {
      pool: this.#pool,
      aborts: new AbortWatch(),
      policy: options.policy,
      lookup: options.lookup ?? systemLookup,
      timeoutMs: options.timeoutMs ?? DELIVERY_TIMEOUT_MS,
      bodyMs: options.bodyMs ?? BODY_TIMEOUT_MS,
      addressMs: options.addressMs ?? ADDRESS_TIMEOUT_MS,
      monotonicMs: () => performance.now(),
    };
  }

  /** Throws for headers that cannot be sent; whatever the receiver does is in the result. */
  post(
    target: WebhookTarget,
    message: { headers: Readonly<Record<string, string>>; body: string | Uint8Array },
    leave: Leave = {},
  ): Promise<ExchangeResult> {
    const encoded = encodeRequest(target, message.headers, message.body);
    const request: WireRequest = { target, message: encoded };
    return new Exchange(this.#deps, request, leave).run();
  }

  counts(): { open: number; idle: number } {
    return this.#pool.counts();
  }

  /** Ends every connection, for good; requests still under way end as `aborted`. */
  close(): void {
    this.#pool.close();
  }
}
