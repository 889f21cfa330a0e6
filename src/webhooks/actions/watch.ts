import type { EventSink } from "../../http/event-stream.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
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
/** For so long a look serves every watcher of a subscription: less than a poll, so that none sees the same one twice. */
const SHARED_MS = 900;
const HEALTH_SHARED_MS = 2_500;
/** Attempts are committed after their end, so one may appear behind others that began later. */
const LOOK_BACK_MS = 30_000;
/** Attempts per poll; of more, the newest are told. */
const ATTEMPTS_PER_POLL = 100;

type Deps = Pick<WebhookDeps, "db" | "clock">;
type Attempts = Awaited<ReturnType<typeof attemptsSince>>;

/** What all watchers of this process look at: a subscription is read once for them, however many they are. */
export class WatchedSubscriptions {
  readonly state: (of: Subscription) => Promise<State>;
  readonly health: (of: Subscription) => ReturnType<typeof showHealth>;

  constructor({ db, clock }: Deps) {
    this.state = shareLooks(clock, SHARED_MS, async ({ partnerId, id }) => {
      const since = addMs(clock.now(), -LOOK_BACK_MS);
      const [subscription, attempts] = await Promise.all([
        subscriptionById(db, partnerId, id),
        attemptsSince(db, id, since, ATTEMPTS_PER_POLL),
      ]);
      return { subscription, attempts };
    });
    this.health = shareLooks(clock, HEALTH_SHARED_MS, (one) => showHealth({ db, clock }, one));
  }
}

interface State {
  readonly subscription: Subscription | undefined;
  readonly attempts: Attempts;
}

/**
 * Tells what happens at a subscription: `subscription` when it changes, `attempt` for each one from now on, `health`
 * every few seconds. Ends with the signal, with the subscription, and when the caller may no longer read.
 */
export async function watchSubscription(
  deps: { readonly clock: Clock; readonly watched: WatchedSubscriptions },
  found: Subscription,
  { sink, mayRead }: { readonly sink: EventSink; readonly mayRead: () => Promise<boolean> },
  signal: AbortSignal,
): Promise<void> {
  const { clock, watched } = deps;
  let seen = idsOf((await watched.state(found)).attempts);
  let told = "";
  for (let poll = 0; !signal.aborted; poll++) {
    if (!(await mayRead())) return;
    const { subscription, attempts } = await watched.state(found);
    if (subscription === undefined) return;
    const shown = showSubscription(subscription);
    if (JSON.stringify(shown) !== told) sink.send("subscription", shown);
    told = JSON.stringify(shown);
    // Oldest first.
    for (const one of attempts.filter(({ id }) => !seen.has(id)).toReversed())
      sink.send("attempt", showAttemptSummary(one), one.id);
    seen = idsOf(attempts);
    if (poll % HEALTH_EVERY === 0)
      sink.send("health", healthObject(await watched.health(subscription)));
    else sink.beat();
    await clock.sleep(POLL_MS, signal);
  }
}

function idsOf(attempts: Attempts): ReadonlySet<string> {
  return new Set(attempts.map(({ id }) => id));
}

/** Whoever asks for the same subscription within the time gets the same answer, also while it is under way. */
function shareLooks<T>(
  clock: Clock,
  sharedMs: number,
  look: (of: Subscription) => Promise<T>,
): (of: Subscription) => Promise<T> {
  const looks = new Map<string, { readonly endMs: number; readonly answer: Promise<T> }>();
  return (of) => {
    const nowMs = clock.monotonicMs();
    const known = looks.get(of.id);
    if (known !== undefined && known.endMs > nowMs) return known.answer;
    for (const [id, { endMs }] of looks) if (endMs <= nowMs) looks.delete(id);
    const answer = look(of);
    looks.set(of.id, { endMs: nowMs + sharedMs, answer });
    return answer;
  };
}
