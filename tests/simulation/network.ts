import type { Process } from "./process.ts";
import type { World } from "./world.ts";

/** A store on the network. */
export class Server {
  readonly name: string;
  /** The usual and the longest time of a request and of its response. */
  readonly typicalMs: number;
  readonly worstMs: number;
  /**
   * The arrival of the last request of each process. Undefined if requests use many connections and arrive in any
   * order.
   */
  readonly arrivals: Map<Process, number> | undefined;
  up = true;
  /** Counts the restarts. Work of an earlier life is lost. */
  life = 0;

  constructor(
    name: string,
    { typicalMs, worstMs, inOrder }: { typicalMs: number; worstMs: number; inOrder: boolean },
  ) {
    this.arrivals = inOrder ? new Map() : undefined;
    this.name = name;
    this.typicalMs = typicalMs;
    this.worstMs = worstMs;
  }
}

/** One connection on the side of the server. */
export interface Session {
  /** Waits for the time of a statement; throws if the server died meanwhile. */
  work(ms: number): Promise<void>;
  /** Waits for the next statement of a transaction; throws if the server or the client died meanwhile. */
  pass(ms: number): Promise<void>;
}

class NetworkError extends Error {
  readonly code = "CONNECTION_CLOSED";
}

/** SQLSTATE of a record that PostgreSQL rejects, and of a row that it cannot read. */
export const REFUSED = "22P05";
export const UNREADABLE = "XX001";

/** An error of the server in response to a statement. */
export class SqlError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** The fate of one request. */
type Fate = "fine" | "unsent" | "answer lost" | "late";

const CONNECTION_ERROR_MS = 5;
const LONG_LATE_MS = 30_000;
/** Calls that are rare, because shards seldom move. They have a higher chance to fail, or they hardly ever would. */
const RARE = new Set(["claim", "release"]);
const RARE_FACTOR = 50;

/**
 * Calls from a process to a server. Each takes time and may suffer a fault: an error before or after the server did the
 * work, a server that works after the caller gave up, or the death or a long pause of the caller.
 */
export class Network {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  call<T>(
    process: Process,
    { server, name, timeoutMs }: { server: Server; name: string; timeoutMs?: number },
    serve: (session: Session) => T | Promise<T>,
  ): Promise<T> {
    const { loop, random } = this.#world;
    return new Promise((resolve, reject) => {
      if (!process.alive) return;
      const fate = this.#strike(process, name);
      const fail = (ms: number, why: string) =>
        void loop.after(ms, () =>
          process.enter(() => reject(new NetworkError(`${server.name}: ${why}`))),
        );
      if (timeoutMs !== undefined) fail(timeoutMs, "timed out");
      if (!server.up) return fail(random.between(0.1, CONNECTION_ERROR_MS), "refused");
      if (fate === "unsent") return fail(this.#latency(process, server), "connection lost");
      const thereMs = this.#way(process, server);
      // The caller gets an error while the request is still on its way.
      if (fate === "late") fail(thereMs, "connection lost");
      const extraMs = fate === "late" && server.arrivals === undefined ? this.#delay() : 0;
      const wasAlive = process.alive;
      loop.after(thereMs + extraMs, () => {
        // Most requests that a process sent before its death arrive.
        if (wasAlive && !process.alive && random.chance(0.3)) return;
        void this.#serve(process, server, serve).then(
          (value) => {
            if (fate === "late") return;
            if (fate === "answer lost") return fail(this.#latency(process, server), "answer lost");
            loop.after(this.#latency(process, server), () => process.enter(() => resolve(value)));
          },
          (error: Error) => {
            if (!(error instanceof SqlError) || fate !== "fine")
              return fail(this.#latency(process, server), error.message);
            loop.after(this.#latency(process, server), () => process.enter(() => reject(error)));
          },
        );
      });
    });
  }

  /** A session of the API, whose processes are not simulated. */
  session(server: Server): Session {
    return this.#open(server, () => true);
  }

  async #serve<T>(
    process: Process,
    server: Server,
    serve: (session: Session) => T | Promise<T>,
  ): Promise<T> {
    if (!server.up) throw new NetworkError("refused");
    return serve(this.#open(server, () => process.alive));
  }

  #open(server: Server, isClientThere: () => boolean): Session {
    const { loop } = this.#world;
    const { life } = server;
    const work = async (ms: number) => {
      await loop.delay(ms);
      if (!server.up || server.life !== life) throw new NetworkError("terminated");
    };
    return {
      work,
      pass: async (ms) => {
        await work(ms);
        if (!isClientThere()) throw new NetworkError("client gone");
      },
    };
  }

  /** Returns the delay of a request whose connection broke: a request that waits for a lock notices that late. */
  #delay(): number {
    const { random, settings } = this.#world;
    const ms = random.between(1, random.chance(settings.faults.longLate) ? LONG_LATE_MS : 400);
    this.#world.fault(`it comes ${Math.round(ms)} ms late`, ms);
    return ms;
  }

  /** Returns the travel time of a request. Requests on a single connection keep their order. */
  #way(process: Process, server: Server): number {
    const { nowMs } = this.#world;
    const ms = this.#latency(process, server);
    if (server.arrivals === undefined) return ms;
    const atMs = Math.max(nowMs + ms, server.arrivals.get(process) ?? 0);
    server.arrivals.set(process, atMs);
    return atMs - nowMs;
  }

  #latency(process: Process, server: Server): number {
    const { random, nowMs } = this.#world;
    const cutMs = server.name === "postgres" ? Math.max(0, process.cutOffUntilMs - nowMs) : 0;
    return cutMs + random.latency(server.typicalMs, server.worstMs);
  }

  #strike(process: Process, name: string): Fate {
    const { random, settings, faulty } = this.#world;
    if (!faulty) return "fine";
    const { faults } = settings;
    if (random.chance(faults.crash)) {
      process.crash(`at ${name}`);
      return random.chance(0.5) ? "fine" : "unsent";
    }
    if (random.chance(faults.pause)) process.pause(random.between(200, 12_000));
    const chance = RARE.has(name) ? Math.min(0.5, RARE_FACTOR * faults.request) : faults.request;
    if (!random.chance(chance)) return "fine";
    const fate = random.pick(["unsent", "answer lost", "late"] as const);
    process.trouble();
    this.#world.fault(`${process.name} ${name}: ${fate}`);
    return fate;
  }
}
