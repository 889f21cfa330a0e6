import { alertsJob, TroubleLook, type LookDeps } from "../../dispatcher/alerts/look.ts";
import type { Raised } from "../../dispatcher/alerts/incidents.ts";
import { createDeliver } from "../../dispatcher/delivery/deliver.ts";
import { HttpClient } from "../../dispatcher/http/client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { parseNetworks } from "../../src/lib/egress.ts";
import { silentLog } from "./dispatch.ts";
import type { WebhookWorld } from "./webhooks.ts";

/** What a dispatcher does about alerts, at a quick pace. */
export function startAlerts({ database, api }: Pick<WebhookWorld, "database" | "api">): {
  stop(): Promise<void>;
} {
  const stop = new AbortController();
  const policy = { allowHttp: true, allowedNetworks: parseNetworks("127.0.0.0/8") };
  const client = new HttpClient({ policy, timeoutMs: 5_000 });
  const { box, schedule, config } = api.deps;
  const job = alertsJob(
    {
      db: database.db,
      clock: systemClock,
      log: silentLog,
      box,
      schedule,
      config,
      deliver: createDeliver({ clock: systemClock, client }),
      retryDelaysMs: [100, 100, 100],
      raised: () => {},
    },
    stop.signal,
  );
  const running = (async () => {
    while (!stop.signal.aborted) {
      await job.run({ reached: "", previousAt: null });
      await systemClock.sleep(100, stop.signal);
    }
    await job.drain?.();
  })();
  return {
    async stop() {
      stop.abort();
      await running;
      client.close();
    },
  };
}

type TestLook = Omit<LookDeps, "schedule" | "raised">;

/** Looks, as a dispatcher does every 5 s; tells what was raised. */
export function createLook(deps: TestLook, raised: (alert: Raised) => void): TroubleLook {
  const schedule = { wake: () => Promise.resolve() };
  return new TroubleLook({ ...deps, schedule, raised }, new AbortController().signal);
}

/** Looks once; answers what was raised. */
export async function lookForTrouble(deps: TestLook, everywhere: boolean): Promise<Raised[]> {
  const found: Raised[] = [];
  await createLook(deps, (alert) => void found.push(alert)).look(everywhere);
  return found;
}
