import { ConfigError, EXIT_CONFIG, readConfig, type Config } from "./config.ts";

const PARENT_POLL_MS = 500;

/** The settings, or the end of the process with one line per fault. */
export function configOrExit(): Config {
  try {
    return readConfig();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const fault of error.faults) console.error(fault);
    process.exit(EXIT_CONFIG);
  }
}

/** Aborts on SIGTERM, on SIGINT, and when the supervisor that `parentPid` names is gone. */
export function stopSignal(parentPid: number | undefined): AbortSignal {
  const stop = new AbortController();
  const abort = () => stop.abort();
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
