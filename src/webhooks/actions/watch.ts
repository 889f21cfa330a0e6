import type { EventSink } from "../../http/event-stream.ts";
import { addMs } from "../../lib/clock.ts";
import { showAttemptSummary } from "../delivery-model.ts";
import { showHealth as healthObject } from "../stats-model.ts";
import { showSubscription, type Subscription } from "../model.ts";
import { attemptsSince } from "../queries/attempts.ts";
import { subscriptionById } from "../queries/subscriptions.ts";
import { showHealth } from "./stats.ts";
import type { WebhookDeps } from "./deps.ts";

const POLL_MS = 1_000;
/** Polls between two looks at the health, and between two beats; servers close what is quiet for 10 s. */
const HEALTH_EVERY = 5;
/** Attempts are committed after their end, so one may appear behind others that began later. */
const LOOK_BACK_MS = 30_000;
/** Attempts per poll; of more, the newest are told. */
const ATTEMPTS_PER_POLL = 100;

type Deps = Pick<WebhookDeps, "db" | "clock">;

/**
 * Tells what happens at a subscription: `subscription` when it changes, `attempt` for each one from now on, `health`
 * every few seconds. Ends with the signal, with the subscription, and when the caller may no longer read.
 */
export async function watchSubscription(
  deps: Deps,
  found: Subscription,
  { sink, mayRead }: { readonly sink: EventSink; readonly mayRead: () => Promise<boolean> },
  signal: AbortSignal,
): Promise<void> {
  const attempts = new NewAttempts(deps, found.id);
  await attempts.take();
  let told = "";
  for (let poll = 0; !signal.aborted; poll++) {
    if (!(await mayRead())) return;
    const current = await subscriptionById(deps.db, found.partnerId, found.id);
    if (current === undefined) return;
    const shown = showSubscription(current);
    if (JSON.stringify(shown) !== told) sink.send("subscription", shown);
    told = JSON.stringify(shown);
    for (const one of await attempts.take()) sink.send("attempt", showAttemptSummary(one), one.id);
    if (poll % HEALTH_EVERY === 0)
      sink.send("health", healthObject(await showHealth(deps, current)));
    else sink.beat();
    await deps.clock.sleep(POLL_MS, signal);
  }
}

/** The attempts that were not there at the last look, oldest first. */
class NewAttempts {
  readonly #deps: Deps;
  readonly #subscriptionId: string;
  #seen: ReadonlySet<string> = new Set();

  constructor(deps: Deps, subscriptionId: string) {
    this.#deps = deps;
    this.#subscriptionId = subscriptionId;
  }

  async take() {
    const since = addMs(this.#deps.clock.now(), -LOOK_BACK_MS);
    const found = await attemptsSince(
      this.#deps.db,
      this.#subscriptionId,
      since,
      ATTEMPTS_PER_POLL,
    );
    const fresh = found.filter(({ id }) => !this.#seen.has(id));
    this.#seen = new Set(found.map(({ id }) => id));
    return fresh.toReversed();
  }
}
