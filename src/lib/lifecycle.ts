import { ownBunError } from "./version.ts";
import type { Clock } from "./clock.ts";
import { ConfigError, EXIT_CONFIG, readConfig, type Config } from "./config.ts";
import { fieldsOf } from "./fields.ts";

const PARENT_POLL_MS = 500;
/**
 * Time in ms after which a draining process is terminated. Draining takes at most 6 s after the drain delay; a process
 * that needs longer hangs, for example on an unreachable database.
 */
const END_WITHIN_MS = 8_000;
/**
 * Time in ms for which a starting process waits for PostgreSQL or Redis, which may be starting at the same time. If one
 * of them does not answer in this time, its address is probably wrong.
 */
const REACHABLE_WITHIN_MS = 20_000;
const RETRY_MS = 1_000;
const BEHIND_A_POOLER =
  "a pooler is in front of the database. Add prepare=false to the address (postgres://…/name?prepare=false), " +
  "so that no state is kept in its sessions; without it, accepted events could be lost.";

/** Reads all settings, or ends the process and prints one line per error. */
export function configOrExit(): Config {
  return settingsOrExit(readConfig);
}

/**
 * Reads some settings, or ends the process with one line per error. Every process calls this first, so it also rejects
 * a Bun version that is too old.
 */
export function settingsOrExit<T>(read: () => T): T {
  exitIfFaulty(ownBunError());
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return exitWith(error.errors.join("\n"));
  }
}

/**
 * Returns a signal that aborts on SIGTERM, on SIGINT, and when the supervisor `parentPid` has ended. `delayMs` is the
 * time in ms that the process waits before it drains.
 */
export function stopSignal(parentPid: number | undefined, delayMs = 0): AbortSignal {
  const stop = new AbortController();
  const abort = () => {
    if (stop.signal.aborted) return;
    setTimeout(() => process.exit(1), delayMs + END_WITHIN_MS).unref();
    stop.abort();
  };
  process.on("SIGTERM", abort);
  process.on("SIGINT", abort);
  if (parentPid !== undefined) {
    // Polls the parent process: a parent that is killed sends no signal, but its child gets another parent.
    const poll = setInterval(() => {
      if (process.ppid !== parentPid) abort();
    }, PARENT_POLL_MS);
    poll.unref();
  }
  return stop.signal;
}

/**
 * Runs the first requests to PostgreSQL or Redis, and repeats all of them every second until they succeed. Ends the
 * process after 20 s without success, and immediately if `isFatal` returns true, which means that waiting does not
 * help.
 */
export async function reachableOrExit<T>(
  name: string,
  ask: () => Promise<T>,
  { clock, isFatal = () => false }: { clock: Clock; isFatal?: (error: unknown) => boolean },
): Promise<T> {
  const endMs = clock.monotonicMs() + REACHABLE_WITHIN_MS;
  for (let said = false; ;) {
    try {
      return await ask();
    } catch (error) {
      if (isFatal(error)) {
        console.error(`${name}: ${BEHIND_A_POOLER}`);
        process.exit(EXIT_CONFIG);
      }
      const reason = reasonOf(error);
      if (clock.monotonicMs() >= endMs) unreachable(name, reason);
      if (!said) console.error(`Waiting for ${name}: ${reason}`);
      said = true;
      await clock.sleep(RETRY_MS);
    }
  }
}

/** Prints `message`, if there is one, and ends the process: it cannot work, and a restart does not help. */
export function exitIfFaulty(message: string | undefined): void {
  if (message !== undefined) exitWith(message);
}

function exitWith(message: string): never {
  console.error(message);
  process.exit(EXIT_CONFIG);
}

const NO_ADDRESS = "is not available: that host is not an address of this machine";
/** Reasons why the process cannot listen on an address, with the remedy, by error code. */
const LISTEN_FAILURES: Readonly<Record<string, string>> = {
  EADDRINUSE:
    "is in use by another program: stop that program, or give this process another port or host",
  EACCES: "is not permitted for this user: give this process a port above 1023",
  EADDRNOTAVAIL: NO_ADDRESS,
  EINVAL: NO_ADDRESS,
  ENOTFOUND: NO_ADDRESS,
};

/** Returns the result of `listen`, or ends the process if it cannot listen on the address. */
export function listenOrExit<T>(
  name: string,
  { host, port }: { readonly host: string; readonly port: number },
  listen: () => T,
): T {
  try {
    return listen();
  } catch (error) {
    const { code } = fieldsOf(error);
    const why =
      LISTEN_FAILURES[String(code)] ??
      `is not available (${String(code)}): give this process another port or host`;
    console.error(`${name} ${port} on ${host} ${why}.`);
    process.exit(1);
  }
}

/** Ends the process because PostgreSQL or Redis cannot be reached, and prints the next step for the operator. */
function unreachable(name: string, reason: string): never {
  console.error(
    `${name} cannot be reached: ${reason} Check the address, and that the server is running.`,
  );
  process.exit(1);
}

/** Ends the process because a Redis Cluster is not supported. A restart against the same Redis does not help. */
export function unsuitableRedis(reason: string): never {
  console.error(
    `REDIS_URL names one server of a Redis Cluster (${reason}), which is not supported: use a single Redis server, or Sentinel with redis+sentinel://host:26379,…/master-name.`,
  );
  process.exit(EXIT_CONFIG);
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? `${cause.message}.` : String(cause);
}
