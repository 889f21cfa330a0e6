// Starts the parts of the service, the API and the dispatchers, each as a supervised process.
import { get } from "node:http";
import { join } from "node:path";

import { connect } from "../../db/client.ts";
import { schemaState } from "../../db/migrate.ts";
import { type Child, type ChildSpec, superviseChild } from "./children.ts";
import type { Settings } from "./settings.ts";
import { StartError } from "./start-error.ts";

const READY_WITHIN_MS = 45_000;
/** Time limit in ms of a readiness request. It is longer than the time for which the API itself waits for a store. */
const READY_ANSWER_MS = 3_000;

export interface Development {
  /** Whether the API and the dispatchers restart when a source file changes. */
  readonly isWatching: boolean;
  /** The port of the API's inspector. The dispatchers use the following ports. */
  readonly inspectPort?: number | undefined;
}

export function childSpecs(
  settings: Settings,
  dataDir: string,
  env: Record<string, string>,
  { inspectPort }: Development,
): ChildSpec[] {
  const spec = (name: string, command: ChildSpec["command"], offset: number): ChildSpec => ({
    name,
    command,
    flags: inspectPort === undefined ? [] : [`--inspect=127.0.0.1:${inspectPort + offset}/${name}`],
    logFile: join(dataDir, "logs", `${name}.log`),
    env: {
      // Parts stop without a delay, because there is no proxy that would have to notice the stop.
      DRAIN_DELAY_MS: "0",
      ...env,
      ...(settings.metricsPort !== undefined && {
        METRICS_PORT: String(settings.metricsPort + offset),
      }),
    },
  });
  const dispatchers = Array.from({ length: settings.dispatchers }, (_, i) =>
    spec(
      i === 0 ? "dispatcher" : `dispatcher-${i + 1}`,
      ["dispatcher/main.ts", "dispatcher"],
      i + 1,
    ),
  );
  return [spec("api", ["src/main.ts", "api"], 0), ...dispatchers];
}

export function watchChild(
  spec: ChildSpec,
  changed: () => void,
  fail: (error: unknown) => void,
): Child {
  return superviseChild(spec, {
    // Deferred, because the first process starts before the caller has received the child.
    started: () => queueMicrotask(changed),
    died(how, delayMs) {
      console.error(
        `${spec.name} ended (${how}): starting again in ${delayMs / 1_000} s; its log is ${spec.logFile}`,
      );
    },
    rejected() {
      fail(
        new StartError(`${spec.name} cannot start (see above). Correct the error and start again.`),
      );
    },
  });
}

/**
 * Restarts the parts whose sources have changed. They are not restarted if the sources contain a migration that the
 * database lacks, because the parts would refuse to start. The migration is not applied here, because it may be
 * unfinished.
 */
export async function restartParts(
  children: readonly Pick<Child, "restart">[],
  databaseUrl: string,
): Promise<void> {
  const db = connect(databaseUrl, { max: 1, name: "reviewrelay-dev" });
  // If the database does not respond now, the parts are restarted and wait for it.
  const state = await schemaState(db).catch(() => undefined);
  await db.close();
  if (state?.kind === "behind") {
    const names = state.missing.map(({ name }) => name).join(", ");
    console.error(
      `The database lacks ${names}, so the API and the dispatcher keep running with the previous sources. When the migration is ` +
        "complete, press Ctrl-C and start again: the start applies it.",
    );
    return;
  }
  console.log("A source file has changed: the API and the dispatcher restart.");
  for (const child of children) child.restart();
}

/** Waits until the API and its stores are ready, so that the service is usable when the start reports success. */
export async function waitUntilReady(
  root: string,
  { stop, patienceMs = READY_WITHIN_MS }: { stop: AbortSignal; patienceMs?: number },
): Promise<void> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const { isReady, said } = await askReadiness(root);
    if (isReady) return;
    stop.throwIfAborted();
    if (performance.now() > deadline)
      throw new StartError(
        `The API did not become ready; ${root}/readyz returned: ${said}. See api.log in DATA_DIR/logs.`,
      );
    await Bun.sleep(50);
  }
}

/**
 * Requests the readiness without `fetch`, which would send a request for a local address to the proxy of HTTP_PROXY.
 */
function askReadiness(root: string): Promise<{ isReady: boolean; said: string }> {
  return new Promise((resolve) => {
    const request = get(
      `${root}/readyz`,
      { agent: false, timeout: READY_ANSWER_MS },
      (response) => {
        let said = "";
        response.on("data", (chunk) => (said += String(chunk)));
        response.once("end", () => resolve({ isReady: response.statusCode === 200, said }));
      },
    );
    request.once("timeout", () => request.destroy(new Error("timeout")));
    request.once("error", () => resolve({ isReady: false, said: "nothing" }));
  });
}
