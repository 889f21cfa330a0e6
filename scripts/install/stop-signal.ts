// Detects requests to stop: a signal, or the end of the wrapper that started this process. This file imports nothing.

/** Environment variable of a process that replaces its parent (install.ts). */
export const RELAUNCHED = "REVIEWRELAY_RELAUNCHED";

/**
 * Time in ms within which several signals count as one. A terminal signals every process of the group, and npm signals
 * this process again.
 */
const TOGETHER_MS = 1_000;
const PARENT_POLL_MS = 500;

/** Aborts at the first request to stop, and calls `force` at each later one. */
export function watchForStop(force: () => void): AbortSignal {
  const controller = new AbortController();
  let askedAt = 0;
  const stop = (reason: string) => {
    if (!controller.signal.aborted) {
      askedAt = performance.now();
      controller.abort(reason);
    } else if (performance.now() - askedAt > TOGETHER_MS) {
      force();
    }
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => stop(name));
  watchWrapper(() => {
    if (!controller.signal.aborted) stop("the command that started this one has stopped");
  });
  return controller.signal;
}

/**
 * Detects the end of npx or npm, which do not forward SIGTERM and leave this process running. The end of any other
 * parent is not a request to stop: a script may start this process in the background and exit.
 */
function watchWrapper(onEnd: () => void): void {
  const parent = process.ppid;
  const isWrapped =
    process.env["npm_lifecycle_event"] !== undefined || process.env[RELAUNCHED] !== undefined;
  if (!isWrapped || parent === 1) return;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onEnd();
  }, PARENT_POLL_MS);
  timer.unref();
}
