import { createSecureContext, getCACertificates } from "node:tls";
import { cancelDeadline, startDeadline } from "../../src/lib/deadline.ts";
import type { Deadline, Expiring } from "../../src/lib/deadline.ts";
import type { EgressProxy } from "../../src/lib/egress-proxy.ts";
import type { WebhookTarget } from "../../src/lib/egress.ts";
import { Connection, SessionCache } from "./connection.ts";
import type { ConnectionUser, Dialling } from "./connection.ts";

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
    const key = keyOf(origin, address);
    this.#blamedMs.delete(key);
    this.#blamedMs.set(key, this.#monotonicMs());
    if (this.#blamedMs.size <= MAX_BLAMED) return;
    const [oldest] = this.#blamedMs.keys();
    if (oldest !== undefined) this.#blamedMs.delete(oldest);
  }

  /** Those without blame first, each group in its own order. */
  inOrder(origin: string, addresses: readonly string[]): readonly string[] {
    if (addresses.length < 2 || this.#blamedMs.size === 0) return addresses;
    const isBlamed = (address: string) => {
      const sinceMs = this.#blamedMs.get(keyOf(origin, address));
      return sinceMs !== undefined && this.#monotonicMs() - sinceMs < BLAMED_MS;
    };
    return addresses.toSorted((a, b) => Number(isBlamed(a)) - Number(isBlamed(b)));
  }
}

function keyOf(origin: string, address: string): string {
  return `${origin} ${address}`;
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
export class ConnectionPool implements Expiring {
  /** Set by `close`: from then on no connection is opened or kept. */
  isClosed = false;
  readonly #options: PoolOptions;
  readonly #dialling: Dialling;
  /** By origin; that which was given back last stands last. */
  readonly #idle = new Map<string, Connection[]>();
  #idling = 0;
  readonly addresses = new AddressMemory(monotonicMs);
  /** Every connection that is not closed yet, idle and half-open ones included. */
  readonly #open = new Set<Connection>();
  #sweepDeadline: Deadline | undefined;
  readonly #forget = (connection: Connection) => void this.#open.delete(connection);

  constructor(options: PoolOptions) {
    this.#options = options;
    const { ca, proxy } = options;
    // A list replaces the platform's own certificates, so those have to be in it.
    const trust = ca.length === 0 ? {} : { ca: [...getCACertificates("default"), ...ca] };
    const context = createSecureContext(trust);
    this.#dialling = { context, proxy, sessions: new SessionCache() };
  }

  /** The connection idle for the shortest time, if one may be used again. */
  take(origin: string): Connection | undefined {
    const idle = this.#idle.get(origin);
    if (idle === undefined) return undefined;
    const now = monotonicMs();
    for (let last = idle.pop(); last !== undefined; last = idle.pop()) {
      this.#idling -= 1;
      if (this.#isUsable(last, now)) return last;
      last.destroy();
    }
    return undefined;
  }

  /** Takes back a connection whose answer was read to its end. */
  release(connection: Connection): void {
    if (this.isClosed) return connection.destroy();
    connection.user = undefined;
    connection.idleSinceMs = monotonicMs();
    const idle = this.#idle.get(connection.origin) ?? [];
    idle.push(connection);
    this.#idle.delete(connection.origin);
    this.#idle.set(connection.origin, idle);
    this.#idling += 1;
    if (this.#idling > this.#options.maxIdle) this.#endOldest();
    this.#sweepDeadline ??= startDeadline(this.#options.idleMs, this);
  }

  open(address: string, target: WebhookTarget, user: ConnectionUser): Connection {
    const route = { ...this.#dialling, address, target };
    const connection = new Connection(route, monotonicMs(), this.#forget);
    connection.user = user;
    this.#open.add(connection);
    return connection;
  }

  counts(): { open: number; idle: number } {
    let idle = 0;
    for (const connections of this.#idle.values())
      for (const { phase } of connections) if (phase === "open") idle++;
    return { open: this.#open.size, idle };
  }

  /** Ends every connection. Those in use tell their users that they closed. */
  close(): void {
    this.isClosed = true;
    cancelDeadline(this.#sweepDeadline);
    this.#idle.clear();
    this.#idling = 0;
    for (const connection of this.#open) connection.close();
  }

  /** Ends the connections that idle for too long. One timer serves all: one each would cost two calls per request. */
  expire(): void {
    const now = monotonicMs();
    for (const [origin, connections] of this.#idle) {
      const kept: Connection[] = [];
      for (const connection of connections) {
        if (this.#isUsable(connection, now)) kept.push(connection);
        else connection.destroy();
      }
      this.#idling -= connections.length - kept.length;
      if (kept.length > 0) this.#idle.set(origin, kept);
      else this.#idle.delete(origin);
    }
    const isEmpty = this.#idle.size === 0;
    this.#sweepDeadline = isEmpty ? undefined : startDeadline(this.#options.idleMs / 4, this);
  }

  #endOldest(): void {
    for (const [origin, connections] of this.#idle) {
      connections.shift()?.destroy();
      this.#idling -= 1;
      if (connections.length === 0) this.#idle.delete(origin);
      return;
    }
  }

  #isUsable(connection: Connection, now: number): boolean {
    if (connection.phase !== "open") return false;
    if (now - connection.bornMs > this.#options.maxConnectionAgeMs) return false;
    return now - connection.idleSinceMs <= Math.min(this.#options.idleMs, connection.keptForMs);
  }
}

const monotonicMs = () => performance.now();
