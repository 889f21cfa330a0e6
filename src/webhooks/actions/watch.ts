import { messageOf, type EventSink } from "../../http/event-stream.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import { showAttemptSummary } from "../delivery-model.ts";
import { showHealth as healthObject } from "../stats-model.ts";
import { showSubscription, type Subscription } from "../model.ts";
import { lookAt, type Look } from "../queries/watch.ts";
import { AttemptFeed, LOOK_BACK_MS, type FeedOptions } from "./attempt-feed.ts";
import { showHealth } from "./stats.ts";
import type { WebhookDeps } from "./deps.ts";

/**
 * A look of all streams together, and every so many looks the health of each subscription: for a subscription that is
 * watched, and all that watch it, five queries in 5.2 s.
 */
const POLL_MS = 1_300;
const HEALTH_EVERY = 4;
/**
 * A look tells whether anything has changed that a bearer check depends on, and then the check is made; after so long it is
 * made again anyway, which tells that the token is in use.
 */
const CHECK_EVERY_MS = 1_800_000;

type Deps = Pick<WebhookDeps, "db"> & { readonly clock: Clock };

/** Who follows a subscription. */
export interface Watcher {
  readonly jti: string;
  readonly sink: EventSink;
  /** The bearer check, and whether the caller may still read. */
  readonly mayRead: () => Promise<boolean>;
  /** Of who wants every attempt, as it was sent or from an earlier one on; others hear of the newest of each look. */
  readonly feed?: Omit<FeedOptions, "subscriptionId"> | undefined;
}

/** An open stream. */
interface Stream extends Omit<Watcher, "feed"> {
  readonly feed: AttemptFeed | undefined;
  readonly end: PromiseWithResolvers<void>;
  /** The state of its token when it was checked last. */
  bearer: string | undefined;
  /** Whether it has heard what was there when it came: only then it hears what follows. */
  isGreeted: boolean;
}

/** What all streams of a subscription have in common. */
interface Watch {
  readonly streams: Set<Stream>;
  readonly ready: Promise<void>;
  subscription: Subscription;
  /** The attempts of the last look. */
  seen: ReadonlySet<string>;
  /** As they were told last. */
  told: Uint8Array;
  health: Uint8Array;
  looks: number;
  isReady: boolean;
}

/** The live streams of this process. However many there are, one look is for all of them. */
export class WatchedSubscriptions {
  readonly #deps: Deps;
  readonly #watches = new Map<string, Watch>();
  #checkedMs = 0;
  /** Aborts when nobody watches any more. */
  #looking: AbortController | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Tells what happens at a subscription: `subscription` when it changes, `attempt` for each one from now on (with a
   * feed, for each without exception), `health` every few seconds. Ends with the signal, with the subscription, and when the caller may no longer read.
   */
  async follow(found: Subscription, watcher: Watcher, signal: AbortSignal): Promise<void> {
    const end = Promise.withResolvers<void>();
    const left = new AbortController();
    const options = watcher.feed && { ...watcher.feed, subscriptionId: found.id };
    const feed = options && new AttemptFeed(this.#deps, options, left.signal);
    const stream: Stream = { ...watcher, feed, end, bearer: undefined, isGreeted: false };
    const watch = this.#watches.get(found.id) ?? this.#begin(found);
    watch.streams.add(stream);
    const leave = () => end.resolve();
    signal.addEventListener("abort", leave);
    if (signal.aborted) leave();
    Promise.all([feed?.begin(), watch.ready]).then(
      ([bookmark]) => greet(watch, stream, bookmark),
      end.reject,
    );
    try {
      await end.promise;
    } finally {
      signal.removeEventListener("abort", leave);
      left.abort();
      watch.streams.delete(stream);
      if (watch.streams.size === 0) this.#forget(watch);
    }
  }

  #begin(found: Subscription): Watch {
    const watch: Watch = {
      streams: new Set(),
      ready: Promise.resolve().then(() => this.#prepare(watch)),
      subscription: found,
      seen: new Set(),
      told: NOTHING,
      health: NOTHING,
      looks: 0,
      isReady: false,
    };
    this.#watches.set(found.id, watch);
    if (this.#looking === undefined) void this.#run((this.#looking = new AbortController()));
    return watch;
  }

  #forget(watch: Watch): void {
    const { id } = watch.subscription;
    if (this.#watches.get(id) === watch) this.#watches.delete(id);
    if (this.#watches.size > 0) return;
    this.#looking?.abort();
    this.#looking = undefined;
  }

  /** What happened until now is told to nobody. */
  async #prepare(watch: Watch): Promise<void> {
    const { id } = watch.subscription;
    const look = await this.#look([id], []);
    watch.seen = idsOf(look, id);
    watch.subscription = look.subscriptions.get(id) ?? watch.subscription;
    watch.told = messageOf("subscription", showSubscription(watch.subscription));
    await this.#readHealth(watch, look);
    watch.isReady = true;
  }

  #look(ids: readonly string[], jtis: readonly string[]): Promise<Look> {
    const { db, clock } = this.#deps;
    const now = clock.now();
    return lookAt(db, { ids, jtis, now, since: addMs(now, -LOOK_BACK_MS) });
  }

  async #run({ signal }: AbortController): Promise<void> {
    const { clock } = this.#deps;
    this.#checkedMs = clock.monotonicMs();
    while (!signal.aborted) {
      const watches = [...this.#watches.values()].filter(({ isReady }) => isReady);
      const streams = watches.flatMap((one) => [...one.streams]);
      // Each ends by itself, and its client comes again.
      if (watches.length > 0)
        await this.#lookOnce(watches, streams).catch((error: unknown) => {
          for (const { end } of streams) end.reject(error);
        });
      await clock.sleep(POLL_MS, signal);
    }
  }

  async #lookOnce(watches: readonly Watch[], streams: readonly Stream[]): Promise<void> {
    const ids = watches.map(({ subscription }) => subscription.id);
    const look = await this.#look(ids, [...new Set(streams.map(({ jti }) => jti))]);
    await this.#checkBearers(streams, look);
    for (const watch of watches) {
      if (!tell(watch, look)) continue;
      if (++watch.looks % HEALTH_EVERY === 0) void this.#tellHealth(watch, look);
      else for (const { sink } of greeted(watch)) sink.beat();
    }
  }

  /** The check itself decides; the look says when it has to be made. */
  async #checkBearers(streams: readonly Stream[], { bearers }: Look): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    const isTime = nowMs - this.#checkedMs >= CHECK_EVERY_MS;
    if (isTime) this.#checkedMs = nowMs;
    const isKnown = ({ jti, bearer }: Stream) =>
      bearer !== undefined && bearers.get(jti) === bearer;
    const asked = streams.filter((one) => isTime || !isKnown(one));
    await Promise.all(
      asked.map(async (one) => {
        one.bearer = bearers.get(one.jti);
        if (await one.mayRead()) return;
        one.isGreeted = false;
        one.end.resolve();
      }),
    );
  }

  async #tellHealth(watch: Watch, look: Look): Promise<void> {
    try {
      await this.#readHealth(watch, look);
      for (const { sink } of greeted(watch)) sink.send(watch.health);
    } catch (error) {
      for (const { end } of watch.streams) end.reject(error);
    }
  }

  async #readHealth(watch: Watch, look: Look): Promise<void> {
    const health = await showHealth(this.#deps, watch.subscription, look);
    watch.health = messageOf("health", healthObject(health));
  }
}

const NOTHING = new Uint8Array();

function greet(watch: Watch, stream: Stream, bookmark: Uint8Array | undefined): void {
  if (!watch.streams.has(stream)) return;
  if (bookmark !== undefined) stream.sink.send(bookmark);
  stream.sink.send(watch.told);
  stream.sink.send(watch.health);
  stream.isGreeted = true;
  stream.feed?.tell(stream.sink).catch(stream.end.reject);
}

function greeted({ streams }: Watch): Stream[] {
  return [...streams].filter(({ isGreeted }) => isGreeted);
}

/** False if the subscription is gone, and its streams with it. */
function tell(watch: Watch, look: Look): boolean {
  const { id } = watch.subscription;
  const subscription = look.subscriptions.get(id);
  if (subscription === undefined) {
    for (const { end } of watch.streams) end.resolve();
    return false;
  }
  watch.subscription = subscription;
  const shown = messageOf("subscription", showSubscription(subscription));
  // Oldest first.
  const attempts = (look.attempts.get(id) ?? []).filter((one) => !watch.seen.has(one.id));
  const news = attempts
    .toReversed()
    .map((one) => messageOf("attempt", showAttemptSummary(one), one.id));
  const isChanged = !Buffer.from(shown).equals(watch.told);
  watch.told = shown;
  watch.seen = idsOf(look, id);
  for (const { sink, feed, end } of greeted(watch)) {
    if (isChanged) sink.send(shown);
    if (feed === undefined) for (const message of news) sink.send(message);
    else feed.tell(sink).catch(end.reject);
  }
  return true;
}

function idsOf({ attempts }: Look, id: string): ReadonlySet<string> {
  return new Set(attempts.get(id)?.map((one) => one.id));
}
