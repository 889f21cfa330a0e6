import type { Process } from "./process.ts";
import type { World } from "./world.ts";

/** A store as the network sees it. */
export class Server {
  readonly name: string;
  /** How long a request takes, and its answer too: usually, and at worst. */
  readonly typicalMs: number;
  readonly worstMs: number;
  /** When the last request of each process arrives. Undefined where requests go over many connections, in any order. */
  readonly arrivals: Map<Process, number> | undefined;
  up = true;
  /** Counts the restarts: what was under way in an earlier life is lost. */
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

/** One connection as the server sees it. */
export interface Session {
  /** Waits as long as a statement takes; throws if the server died meanwhile. */
  work(ms: number): Promise<void>;
  /** Waits from one statement of a transaction to the next; throws if the client died meanwhile, too. */
  pass(ms: number): Promise<void>;
}

class NetworkError extends Error {
  readonly code = "CONNECTION_CLOSED";
}

/** SQLSTATE of a record that Postgres refuses, and of a row that it cannot read. */
export const REFUSED = "22P05";
export const UNREADABLE = "XX001";

/** What the server answers instead of doing what it was told. */
export class SqlError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** What becomes of one request. */
type Fate = "fine" | "unsent" | "answer lost" | "late";

const CONNECTION_ERROR_MS = 5;
const LONG_LATE_MS = 30_000;
/** Calls that are rare, because shards seldom move: with the chances of the others they would hardly ever fail. */
const RARE = new Set(["claim", "release"]);
const RARE_FACTOR = 50;

/**
 * Calls from a process to a server. Each takes its time, and at each something may happen: an error before or after
 * the server did it, a server that does it after the caller gave up, the death or a long pause of the caller.
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
      // The caller is told of an error, while the request is still on its way.
      if (fate === "late") fail(thereMs, "connection lost");
      const extraMs = fate === "late" && server.arrivals === undefined ? this.#delay() : 0;
      const wasAlive = process.alive;
      loop.after(thereMs + extraMs, () => {
        // What a process has sent before it died arrives, but for some.
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

  /** A session of the API, whose processes the simulation leaves out. */
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

  /** How much later a request is carried out whose connection broke: one that waits for a lock does not notice for long. */
  #delay(): number {
    const { random, settings } = this.#world;
    const ms = random.between(1, random.chance(settings.faults.longLate) ? LONG_LATE_MS : 400);
    this.#world.fault(`it comes ${Math.round(ms)} ms late`, ms);
    return ms;
  }

  /** How long a request needs; on a single connection none overtakes another. */
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
