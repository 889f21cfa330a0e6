import { ownBunError } from "./version.ts";
import type { Clock } from "./clock.ts";
import { ConfigError, EXIT_CONFIG, readConfig, type Config } from "./config.ts";

const PARENT_POLL_MS = 500;
/** Beyond the delay, a drain takes 6 s at the most; whoever still hangs then, on a store that is gone too, is ended. */
const END_WITHIN_MS = 8_000;
/** A store that is starting at the same time is waited for; one that is not there in this time has the wrong address. */
const REACHABLE_WITHIN_MS = 20_000;
const RETRY_MS = 1_000;
const BEHIND_A_POOLER =
  "a pooler is in front of the database. Add prepare=false to the address (postgres://…/name?prepare=false), " +
  "so that nothing is kept in its sessions; without it, accepted events could be lost.";

/** The settings, or the end of the process with one line per fault. */
export function configOrExit(): Config {
  return settingsOrExit(readConfig);
}

/** It is the first thing that every process does, so an older Bun is refused here as well. */
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
 * Aborts on SIGTERM, on SIGINT, and when the supervisor that `parentPid` names is gone. `delayMs` is what the process
 * waits by itself before it drains.
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
    // A killed parent sends no signal; the child is handed to another one.
    const poll = setInterval(() => {
      if (process.ppid !== parentPid) abort();
    }, PARENT_POLL_MS);
    poll.unref();
  }
  return stop.signal;
}

/**
 * What a process asks of a store before it begins. Waits until the store answers, saying so, and asks all of it again;
 * ends the process if it does not within 20 seconds, and at once for what no waiting mends.
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

/** Ends the process where `fieldError` says that it cannot work, and that starting it again cannot help. */
export function exitIfFaulty(fieldError: string | undefined): void {
  if (fieldError !== undefined) exitWith(fieldError);
}

function exitWith(fieldError: string): never {
  console.error(fieldError);
  process.exit(EXIT_CONFIG);
}

const NO_ADDRESS = "cannot be had: that host is not an address of this machine";
/** Why an address cannot be listened on, and what to do, by the code of the error. */
const REFUSED: Readonly<Record<string, string>> = {
  EADDRINUSE:
    "is in use by another program: stop that program, or give this process another port or host",
  EACCES: "is not for this user: give this process a port above 1023",
  EADDRNOTAVAIL: NO_ADDRESS,
  EINVAL: NO_ADDRESS,
  ENOTFOUND: NO_ADDRESS,
};

/** What `listen` answers, or the end of the process where the address cannot be had. */
export function listenOrExit<T>(
  name: string,
  { host, port }: { readonly host: string; readonly port: number },
  listen: () => T,
): T {
  try {
    return listen();
  } catch (error) {
    const code = error instanceof Error ? Reflect.get(error, "code") : undefined;
    const why =
      REFUSED[String(code)] ??
      `cannot be had (${String(code)}): give this process another port or host`;
    console.error(`${name} ${port} on ${host} ${why}.`);
    process.exit(1);
  }
}

/** Ends the process with what to do next. */
function unreachable(name: string, reason: string): never {
  console.error(
    `${name} cannot be reached: ${reason} Check the address, and that the server runs.`,
  );
  process.exit(1);
}

/** Ends the process: another start against the same Redis cannot help. */
export function unsuitableRedis(reason: string): never {
  console.error(
    `REDIS_URL names one server of a Redis Cluster (${reason}), and the keys are on all of them: use one Redis server, or Sentinels by redis+sentinel://host:26379,…/master-name.`,
  );
  process.exit(EXIT_CONFIG);
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? `${cause.message}.` : String(cause);
}
