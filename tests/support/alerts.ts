import { ulid } from "ulid";

import type { RawDb } from "../../db/client.ts";
import {
  alertsJob,
  detectIncidents as look,
  type LookDeps,
} from "../../dispatcher/alerts/detect.ts";
import type { Raised } from "../../dispatcher/alerts/incidents.ts";
import { createDeliver } from "../../dispatcher/delivery/deliver.ts";
import { Reach } from "../../dispatcher/delivery/reach.ts";
import { HttpClient } from "../../dispatcher/http/client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { parseNetworks } from "../../src/lib/egress.ts";
import { newSecret, type SecretBox } from "../../src/lib/secrets.ts";
import { ALERT_KINDS, alertSecretAssociatedData } from "../../src/outbox/alert.ts";
import { healthSummaryOf } from "../../src/webhooks/actions/stats.ts";
import { troubleSince } from "../../src/webhooks/queries/incidents.ts";
import { silentLog } from "./dispatch.ts";
import type { WebhookWorld } from "./webhooks.ts";

interface AlertSettings {
  readonly kinds?: readonly string[];
  readonly recipients?: readonly string[];
  readonly confirmed?: readonly string[];
  readonly url?: string | null;
}

/** Inserts the alert settings of a partner, without a pause between its mails, and returns the secret of its alerts. */
export async function setAlerts(
  { db, box }: { db: RawDb; box: SecretBox },
  partnerId: number,
  { kinds = ALERT_KINDS, recipients, confirmed = [], url = null }: AlertSettings = {},
): Promise<string> {
  const id = ulid();
  const secret = newSecret();
  const sealed = url && box.seal(secret, alertSecretAssociatedData(partnerId, id));
  await db.sql`
    insert into alert_settings (id, partner_id, recipients, confirmed_recipients, kinds, oldest_waiting_minutes,
                                digest_minutes, webhook_url, sealed_secret, secret_fingerprint, updated_at)
    values (${id}, ${partnerId}, ${recipients ? [...recipients] : null}, ${[...confirmed]}, ${[...kinds]}, 15, 0, ${url},
            ${sealed}, ${url && "0123456789abcdef"}, now())`;
  return secret;
}

/** Runs a dispatcher's alerts job every 100 ms, with retry delays of 100 ms, so that tests do not wait minutes. */
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
      reach: new Reach(),
      healthSummaryOf: (one) => healthSummaryOf({ db: database.db, clock: systemClock }, one),
      troubleSince,
      retryDelaysMs: [100, 100, 100],
    },
    stop.signal,
  );
  const running = (async () => {
    while (!stop.signal.aborted) {
      await job.run({ reached: "" });
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

type Given = Pick<LookDeps, "db" | "box"> & Partial<Pick<LookDeps, "clock" | "log">>;

/**
 * Checks once for incidents, as a dispatcher does every 5 s, and returns the incidents that it raised. Its mails link to
 * https://reviews.example.
 */
export function detectIncidents(given: Given, everywhere = false): Promise<Raised[]> {
  const config = { serverRoot: "https://reviews.example" };
  const deps = { clock: systemClock, log: silentLog, config, ...given };
  const schedule = { wakeMailer: () => {} };
  const summary: LookDeps["healthSummaryOf"] = (one) => healthSummaryOf(deps, one);
  return look(
    { ...deps, schedule, healthSummaryOf: summary, troubleSince },
    everywhere,
    new AbortController().signal,
  );
}
