import { createSecureContext, getCACertificates } from "node:tls";
import { startDeadline } from "../../src/lib/waiter.ts";
import type { EgressProxy } from "../../src/lib/egress-proxy.ts";
import type { WebhookTarget } from "../../src/lib/egress.ts";
import { Connection, type ConnectionUser, type Dialling } from "./connection.ts";

/** For how long an address that could not be connected to is tried last (our choice). */
const BLAMED_MS = 60_000;
/** How many such addresses are remembered (our choice). */
const MAX_BLAMED = 1_000;

/** Which addresses failed lately: a name with a dead address must not cost its wait at every connection. */
export class AddressMemory {
  /** By origin and address, since when; the latest stands last. */
  readonly #blamedMs = new Map<string, number>();
  readonly #monotonicMs: () => number;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  blame(origin: string, address: string): void {
    const key = `${origin} ${address}`;
    this.#blamedMs.delete(key);
    this.#blamedMs.set(key, this.#monotonicMs());
    const [oldest = key] = this.#blamedMs.keys();
    if (this.#blamedMs.size > MAX_BLAMED) this.#blamedMs.delete(oldest);
  }

  /** Those without blame first, each group in its own order. */
  inOrder(origin: string, addresses: readonly string[]): readonly string[] {
    const sinceMs = this.#monotonicMs() - BLAMED_MS;
    const isBlamed = (address: string) =>
      (this.#blamedMs.get(`${origin} ${address}`) ?? sinceMs) > sinceMs;
    return addresses.toSorted((a, b) => Number(isBlamed(a)) - Number(isBlamed(b)));
  }
}

export interface PoolOptions {
  readonly idleMs: number;
  readonly maxConnectionAgeMs: number;
  /** How many connections may idle, over all receivers. */
  readonly maxIdle: number;
  /** PEM certificates trusted besides those that the platform trusts. */
  readonly ca: readonly string[];
  /** Names are looked up and addresses checked here all the same: the proxy is told the checked address. */
  readonly proxy: EgressProxy | undefined;
}

/**
 * Keep-alive connections, shared within one origin (scheme, host name and port) and never beyond: two
 * names at one address may be two tenants. Each connection stays with the one address that was checked
 * for it, so reuse needs no look-up.
 */
export class ConnectionPool {
  readonly addresses = new AddressMemory(() => performance.now());
  readonly #options: PoolOptions;
  readonly #dialling: Dialling;
  /** By origin; the connection that was released last stands last, and so does its origin. */
  readonly #idle = new Map<string, Connection[]>();
  #idling = 0;
  /** Every connection that is not closed yet, idle and half-open ones included. */
  readonly #open = new Set<Connection>();
  readonly #closed = (connection: Connection) => {
    this.#open.delete(connection);
    this.#unlist(connection);
  };

  constructor(options: PoolOptions) {
    this.#options = options;
    const { ca, proxy } = options;
    // A list replaces the platform's own certificates, so those have to be in it.
    const trust = ca.length === 0 ? {} : { ca: [...getCACertificates("default"), ...ca] };
    this.#dialling = { context: createSecureContext(trust), proxy, sessions: new Map() };
  }

  /** The connection idle for the shortest time, if one may be used again. */
  take(origin: string): Connection | undefined {
    const last = this.#idle.get(origin)?.at(-1);
    if (last === undefined) return undefined;
    this.#unlist(last);
    // In a process that stood still its deadline comes late.
    if (performance.now() <= last.keptUntilMs) return last;
    last.destroy();
    return undefined;
  }

  /** Takes back a connection whose answer was read to its end, and whose receiver keeps it for so long. */
  release(connection: Connection, keptForMs: number): void {
    const { idleMs, maxConnectionAgeMs, maxIdle } = this.#options;
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

  /** Ends every connection. A request that is still under way hears of it at its deadline. */
  close(): void {
    for (const connection of this.#open) connection.destroy();
  }

  /** Takes a connection off the list of those that idle, if it is on it. */
  #unlist(connection: Connection): void {
    const idle = this.#idle.get(connection.origin) ?? [];
    const at = idle.lastIndexOf(connection);
    if (at === -1) return;
    idle.splice(at, 1);
    if (idle.length === 0) this.#idle.delete(connection.origin);
    this.#idling -= 1;
  }
}
