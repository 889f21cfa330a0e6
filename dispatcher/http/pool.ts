import { createSecureContext, getCACertificates } from "node:tls";
import { startDeadline } from "../../src/lib/waiter.ts";
import type { EgressProxy } from "../../src/lib/egress-proxy.ts";
import type { EgressPolicy, WebhookTarget } from "../../src/lib/egress.ts";
import { type Key, keyOf } from "../../src/lib/kind-key.ts";
import { systemLookup } from "../../src/lib/name-resolver.ts";
import { Connection, type ConnectionUser, type Dialling } from "./connection.ts";

/** The time in milliseconds for which an address that could not be connected to is tried last (our choice). */
const BLAME_MS = 60_000;
/** The most failed addresses that are remembered (our choice). */
const MAX_BLAMED_ADDRESSES = 1_000;

/**
 * Remembers addresses that failed recently, so that a host name with an address that does not answer does not cost a
 * wait at every connection.
 */
export class AddressMemory {
  /** The time of the last failure by origin and address, oldest first. */
  readonly #blamedMs = new Map<Key<"receiver">, number>();
  readonly #monotonicMs: () => number;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  blame(origin: string, address: string): void {
    const key = keyOf("receiver", origin, address);
    this.#blamedMs.delete(key);
    this.#blamedMs.set(key, this.#monotonicMs());
    const [oldest = key] = this.#blamedMs.keys();
    if (this.#blamedMs.size > MAX_BLAMED_ADDRESSES) this.#blamedMs.delete(oldest);
  }

  /** Returns the addresses without a recent failure first; each group keeps its order. */
  inOrder(origin: string, addresses: readonly string[]): readonly string[] {
    const sinceMs = this.#monotonicMs() - BLAME_MS;
    const isBlamed = (address: string) =>
      (this.#blamedMs.get(keyOf("receiver", origin, address)) ?? sinceMs) > sinceMs;
    return addresses.toSorted((a, b) => Number(isBlamed(a)) - Number(isBlamed(b)));
  }
}

/** The settings of a client that is created without settings of its own. */
const CLIENT_DEFAULTS = {
  lookup: systemLookup,
  // Contract 7.10: the time limit in milliseconds for look-up, connection, TLS, request and response headers
  // together.
  timeoutMs: 15_000,
  // Contract 7.5: the further milliseconds that the response body may take.
  bodyMs: 2_000,
  // Our choice: the milliseconds after which the next of several addresses is tried.
  addressMs: 3_000,
  // Contract 7.10: the milliseconds that a connection may idle. Many receivers close an idle connection after 5 s.
  idleMs: 4_000,
  // Our choice: the age in milliseconds from which a connection is not reused. Addresses are checked only when a
  // connection is made, so a connection that is reused for ever would never be checked again, nor follow a host name
  // that moved to another address.
  maxConnectionAgeMs: 60_000,
  // Our choice: the most idle connections to all receivers, because each takes a file descriptor here and at the
  // receiver.
  maxIdle: 1_024,
};

export interface HttpClientOptions extends Partial<Readonly<typeof CLIENT_DEFAULTS>> {
  readonly policy: EgressPolicy;
  /** PEM certificates that are trusted in addition to those of the platform. */
  readonly ca?: readonly string[];
  /** The outbound proxy. Names are still resolved and checked here, and the proxy gets the checked address. */
  readonly proxy?: EgressProxy | undefined;
}

/**
 * Keep-alive connections, shared within one origin (scheme, host name and port) only, because two host names at one
 * address may be two tenants. A connection keeps the address that was checked for it, so reuse needs no look-up.
 */
export class ConnectionPool {
  readonly addresses = new AddressMemory(() => performance.now());
  readonly settings: HttpClientOptions & Readonly<typeof CLIENT_DEFAULTS>;
  readonly #dialling: Dialling;
  /** The idle connections by origin. The most recently released one is last, and so is its origin. */
  readonly #idle = new Map<string, Connection[]>();
  #idling = 0;
  /** Every connection that is not closed, including idle and half-open ones. */
  readonly #open = new Set<Connection>();
  readonly #closed = (connection: Connection) => {
    this.#open.delete(connection);
    this.#unlist(connection);
  };

  constructor(options: HttpClientOptions) {
    this.settings = { ...CLIENT_DEFAULTS, ...options };
    const { ca = [], proxy } = options;
    // The option `ca` replaces the certificates of the platform, so its list has to contain them.
    const trust = ca.length === 0 ? {} : { ca: [...getCACertificates("default"), ...ca] };
    this.#dialling = { context: createSecureContext(trust), proxy, sessions: new Map() };
  }

  /** Takes the connection to this origin that was idle for the shortest time, if any connection may be reused. */
  take(origin: string): Connection | undefined {
    const last = this.#idle.get(origin)?.at(-1);
    if (last === undefined) return undefined;
    this.#unlist(last);
    // The timer is late in a process that stood still, so the time is checked here, too.
    if (performance.now() <= last.keptUntilMs) return last;
    last.destroy();
    return undefined;
  }

  /**
   * Takes back a connection after its response was read to the end. The receiver keeps the connection open for
   * `keptForMs`.
   */
  release(connection: Connection, keptForMs: number): void {
    const { idleMs, maxConnectionAgeMs, maxIdle } = this.settings;
    const { origin, bornMs } = connection;
    const now = performance.now();
    const idlesMs = Math.min(idleMs, keptForMs, bornMs + maxConnectionAgeMs - now);
    if (idlesMs <= 0) return connection.destroy();
    connection.user = undefined;
    connection.keptUntilMs = now + idlesMs;
    connection.idleDeadline ??= startDeadline(idlesMs, connection);
    const idle = this.#idle.get(origin) ?? [];
    idle.push(connection);
    this.#idle.delete(origin);
    this.#idle.set(origin, idle);
    this.#idling += 1;
    if (this.#idling <= maxIdle) return;
    const [oldest] = this.#idle.values();
    oldest?.[0]?.destroy();
  }

  open(address: string, target: WebhookTarget, user: ConnectionUser): Connection {
    const connection = new Connection({ ...this.#dialling, address, target }, user, this.#closed);
    this.#open.add(connection);
    return connection;
  }

  counts(): { open: number; idle: number } {
    return { open: this.#open.size, idle: this.#idling };
  }

  /** Closes every connection. A running request fails at its deadline. */
  close(): void {
    for (const connection of this.#open) connection.destroy();
  }

  /** Removes a connection from the list of idle connections, if it is there. */
  #unlist(connection: Connection): void {
    const idle = this.#idle.get(connection.origin) ?? [];
    const at = idle.lastIndexOf(connection);
    if (at === -1) return;
    idle.splice(at, 1);
    if (idle.length === 0) this.#idle.delete(connection.origin);
    this.#idling -= 1;
  }
}
