// When to stop: a signal, or the death of the wrapper that we were started through. Imports nothing.

/** Set for a process that another one of ours started in its own place (install.ts). */
export const RELAUNCHED = "REVIEWRELAY_RELAUNCHED";

/** Asks that come together are one: a terminal tells every process, and npm tells us once more. */
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
    if (!controller.signal.aborted) stop("the command that started this one has ended");
  });
  return controller.signal;
}

/**
 * npx and npm do not pass SIGTERM on: they die and leave us behind. Anybody else's death is no request:
 * a script that starts us in the background and ends wants us to go on.
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
