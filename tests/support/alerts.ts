import { keepAlerts } from "../../dispatcher/alerts/keep-alerts.ts";
import { TroubleLook, type LookDeps, type Raised } from "../../dispatcher/alerts/look.ts";
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
  const running = keepAlerts(
    {
      db: database.db,
      clock: systemClock,
      log: silentLog,
      box,
      schedule,
      config,
      deliver: createDeliver({ clock: systemClock, client }),
      retryDelaysMs: [100, 100, 100],
      count: () => undefined,
      lookMs: 100,
    },
    stop.signal,
  );
  return {
    async stop() {
      stop.abort();
      await running;
      client.close();
    },
  };
}

/** Looks once, as a dispatcher does every 5 s; answers what was raised. */
export async function lookForTrouble(deps: LookDeps, everywhere: boolean): Promise<Raised[]> {
  const found: Raised[] = [];
  const stop = new AbortController();
  const listener = {
    raised: (alerts: readonly Raised[]) => void found.push(...alerts),
    mailed() {},
  };
  await new TroubleLook(deps, listener, stop.signal).look(everywhere);
  stop.abort();
  return found;
}
