import { errorFields } from "../../src/lib/log.ts";
import { MAIL_WAKE } from "../../src/outbox/mail.ts";
import type { Waker } from "../../src/outbox/schedule.ts";
import { TroubleLook, type LookDeps, type LookListener } from "./look.ts";
import { postAlerts, type PostDeps } from "./post.ts";

/** How long a stopping process waits for the POSTs under way. */
const DRAIN_MS = 5_000;
/** How often the subscriptions in trouble are looked at, of all processes together about as often. */
const LOOK_MS = 5_000;
/** Every so many looks also those that have a backlog and no failure. */
const LOOKS_EVERYWHERE = 12;

export interface AlertDeps extends LookDeps, PostDeps {
  readonly schedule: Waker;
  /** Counts what was raised. */
  readonly count: (kind: string) => void;
  /** Another pace than `LOOK_MS`. */
  readonly lookMs?: number;
}

/** Raises alerts and sends them, until the signal aborts. A look that fails is logged and made again. */
export async function keepAlerts(deps: AlertDeps, stop: AbortSignal): Promise<void> {
  const { clock, log, schedule, count, lookMs = LOOK_MS } = deps;
  const listener: LookListener = {
    raised(alerts) {
      for (const { kind } of alerts) count(kind);
    },
    mailed: () => void schedule.wake([MAIL_WAKE]),
  };
  const trouble = new TroubleLook(deps, listener, stop);
  // Nobody waits for a receiver of alerts: the posts go on while the next look is made.
  let posting: Promise<void> | undefined;
  for (let look = 0; !stop.aborted; look += 1) {
    try {
      await trouble.look(look % LOOKS_EVERYWHERE === 0);
    } catch (error) {
      log.warn("alerts.failed", errorFields(error));
    }
    posting ??= postAlerts(deps, stop)
      .catch((error: unknown) => log.warn("alerts.failed", errorFields(error)))
      .finally(() => (posting = undefined));
    await clock.sleep(lookMs, stop);
  }
  await Promise.race([posting, clock.sleep(DRAIN_MS)]);
}
