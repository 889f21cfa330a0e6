import { ulidFloor } from "../../../db/partitions.ts";
import { messageOf, type EventSink } from "../../http/event-stream.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { shown } from "../../http/shown.ts";
import { AttemptSummaryObject } from "../delivery-model.ts";
import { HealthObject } from "../stats-model.ts";
import { showSubscription, type Subscription } from "../model.ts";
import { pollStreams, type PolledRows } from "../queries/watch.ts";
import { AttemptFeed, LOOK_BACK_MS, type FeedOptions } from "./attempt-feed.ts";
import { showHealth } from "./stats.ts";
import type { WebhookDeps } from "./deps.ts";

/** The interval in milliseconds between two polls. One query per poll serves all streams of the process. */
const POLL_MS = 1_300;
/**
 * The number of polls after which the health of each watched subscription is read again: five queries in 5.2 s,
 * however many streams watch it.
 */
const POLLS_PER_HEALTH = 4;
/**
 * The longest interval in milliseconds between two bearer checks of a stream. A check also runs when a poll finds
 * that the state of the token has changed. The periodic check records that the token is in use.
 */
const CHECK_EVERY_MS = 1_800_000;

type Deps = Pick<WebhookDeps, "db"> & {
  readonly clock: Clock;
  readonly config: Pick<Config, "sessionLimits">;
};

/** A client that follows a subscription. */
export interface Watcher {
  readonly jti: string;
  readonly sink: EventSink;
  /** Repeats the bearer check and the access rule of the route. */
  readonly mayRead: () => Promise<boolean>;
  /**
   * Present if the client wants every attempt, with bodies or after an earlier attempt. Other clients get the newest
   * attempts of each poll.
   */
  readonly feed?: Omit<FeedOptions, "subscriptionId"> | undefined;
}

interface Stream extends Omit<Watcher, "feed"> {
  readonly feed: AttemptFeed | undefined;
  readonly end: PromiseWithResolvers<void>;
  /** The state of the stream's token at the last bearer check. */
  bearer: string | undefined;
  /** True once the initial messages were sent. Changes are sent only from then on. */
  isStarted: boolean;
}

/** State that all streams of one subscription share. */
interface Watch {
  readonly streams: Set<Stream>;
  readonly ready: Promise<void>;
  subscription: Subscription;
  /** Ids of the attempts that the last poll has returned. */
  seen: ReadonlySet<string>;
  /** The last sent messages about the subscription and its health, which a change is compared with. */
  sent: Uint8Array;
  health: Uint8Array;
  polls: number;
  isReady: boolean;
}

/** The live streams of this process. One poll serves all of them, however many there are. */
export class WatchedSubscriptions {
  readonly #deps: Deps;
  readonly #watches = new Map<string, Watch>();
  #checkedMs = 0;
  /** Stops the polling; undefined while there is no stream. */
  #polling: AbortController | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Streams the changes of a subscription: `subscription` when its settings or state change, `attempt` for each new
   * attempt, `health` every few seconds. Without a feed, only the newest attempts of each poll are sent. Ends when
   * the signal aborts, when the subscription is deleted, or when the caller may no longer read it.
   */
  async follow(found: Subscription, watcher: Watcher, signal: AbortSignal): Promise<void> {
    const end = Promise.withResolvers<void>();
    const left = new AbortController();
    const options = watcher.feed && { ...watcher.feed, subscriptionId: found.id };
    const feed = options && new AttemptFeed(this.#deps, options, left.signal);
    const stream: Stream = { ...watcher, feed, end, bearer: undefined, isStarted: false };
    const watch = this.#watches.get(found.id) ?? this.#begin(found);
    // The shared state is replaced by `found`, which the caller has just read. The last poll may be older than a change
    // that the client has already seen.
    if (watch.isReady) sendState(watch, found);
    watch.streams.add(stream);
    const leave = () => end.resolve();
    signal.addEventListener("abort", leave);
    if (signal.aborted) leave();
    Promise.all([feed?.start(), watch.ready]).then(
      ([bookmark]) => sendInitial(watch, stream, bookmark),
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
      sent: NO_MESSAGE,
      health: NO_MESSAGE,
      polls: 0,
      isReady: false,
    };
    this.#watches.set(found.id, watch);
    if (this.#polling === undefined) void this.#run((this.#polling = new AbortController()));
    return watch;
  }

  #forget(watch: Watch): void {
    const { id } = watch.subscription;
    if (this.#watches.get(id) === watch) this.#watches.delete(id);
    if (this.#watches.size > 0) return;
    this.#polling?.abort();
    this.#polling = undefined;
  }

  /**
   * Reads the present state of a subscription. The attempts that exist now count as seen, because a stream only gets
   * attempts from its start on.
   */
  async #prepare(watch: Watch): Promise<void> {
    const { id } = watch.subscription;
    const look = await this.#poll([id], []);
    watch.seen = idsOf(look, id);
    watch.subscription = look.subscriptions.get(id) ?? watch.subscription;
    watch.sent = messageOf("subscription", showSubscription(watch.subscription));
    await this.#readHealth(watch, look);
    watch.isReady = true;
  }

  #poll(ids: readonly string[], jtis: readonly string[]): Promise<PolledRows> {
    const { db, clock, config } = this.#deps;
    const now = clock.now();
    const firstId = ulidFloor(addMs(now, -LOOK_BACK_MS));
    return pollStreams(db, { ids, jtis, now, firstId, ...config.sessionLimits });
  }

  async #run({ signal }: AbortController): Promise<void> {
    const { clock } = this.#deps;
    this.#checkedMs = clock.monotonicMs();
    while (!signal.aborted) {
      const watches = [...this.#watches.values()].filter(({ isReady }) => isReady);
      const streams = watches.flatMap((one) => [...one.streams]);
      // If a poll fails, all streams end, and their clients connect again.
      if (watches.length > 0)
        await this.#pollOnce(watches, streams).catch((error: unknown) => {
          for (const { end } of streams) end.reject(error);
        });
      await clock.sleep(POLL_MS, signal);
    }
  }

  async #pollOnce(watches: readonly Watch[], streams: readonly Stream[]): Promise<void> {
    const ids = watches.map(({ subscription }) => subscription.id);
    const look = await this.#poll(ids, [...new Set(streams.map(({ jti }) => jti))]);
    await this.#checkBearers(streams, look);
    for (const watch of watches) {
      if (!sendChanges(watch, look)) continue;
      if (++watch.polls % POLLS_PER_HEALTH === 0) void this.#sendHealth(watch, look);
      else for (const { sink } of startedStreams(watch)) sink.beat();
    }
  }

  /**
   * Repeats the bearer checks of tokens whose state has changed, and every `CHECK_EVERY_MS` those of all tokens. Ends
   * the streams whose callers may no longer read.
   */
  async #checkBearers(streams: readonly Stream[], { bearers }: PolledRows): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    const isTime = nowMs - this.#checkedMs >= CHECK_EVERY_MS;
    if (isTime) this.#checkedMs = nowMs;
    const isKnown = ({ jti, bearer }: Stream) =>
      bearer !== undefined && bearers.get(jti) === bearer;
    const due = streams.filter((one) => isTime || !isKnown(one));
    await Promise.all(
      due.map(async (one) => {
        one.bearer = bearers.get(one.jti);
        if (await one.mayRead()) return;
        one.isStarted = false;
        one.end.resolve();
      }),
    );
  }

  async #sendHealth(watch: Watch, look: PolledRows): Promise<void> {
    try {
      await this.#readHealth(watch, look);
      for (const { sink } of startedStreams(watch)) sink.send(watch.health);
    } catch (error) {
      for (const { end } of watch.streams) end.reject(error);
    }
  }

  async #readHealth(watch: Watch, look: PolledRows): Promise<void> {
    const health = await showHealth(this.#deps, watch.subscription, look);
    watch.health = messageOf("health", shown(HealthObject, health));
  }
}

const NO_MESSAGE = new Uint8Array();

function sendInitial(watch: Watch, stream: Stream, bookmark: Uint8Array | undefined): void {
  if (!watch.streams.has(stream)) return;
  if (bookmark !== undefined) stream.sink.send(bookmark);
  stream.sink.send(watch.sent);
  stream.sink.send(watch.health);
  stream.isStarted = true;
  stream.feed?.sendNew(stream.sink).catch(stream.end.reject);
}

/** Sends the present settings and state of a subscription to its streams, if they have changed. */
function sendState(watch: Watch, subscription: Subscription): void {
  watch.subscription = subscription;
  const sent = messageOf("subscription", showSubscription(subscription));
  if (Buffer.from(sent).equals(watch.sent)) return;
  watch.sent = sent;
  for (const { sink } of startedStreams(watch)) sink.send(sent);
}

function startedStreams({ streams }: Watch): Stream[] {
  return [...streams].filter(({ isStarted }) => isStarted);
}

/**
 * Sends the changes of a subscription that a poll has found. Returns false if the subscription was deleted, and ends
 * its streams.
 */
function sendChanges(watch: Watch, look: PolledRows): boolean {
  const { id } = watch.subscription;
  const subscription = look.subscriptions.get(id);
  if (subscription === undefined) {
    for (const { end } of watch.streams) end.resolve();
    return false;
  }
  sendState(watch, subscription);
  const unseen = (look.attempts.get(id) ?? []).filter((one) => !watch.seen.has(one.id));
  // The poll returns the newest attempt first, and streams get the oldest first.
  const messages = unseen
    .toReversed()
    .map((one) => messageOf("attempt", shown(AttemptSummaryObject, one), one.id));
  watch.seen = idsOf(look, id);
  for (const { sink, feed, end } of startedStreams(watch)) {
    if (feed === undefined) for (const message of messages) sink.send(message);
    else feed.sendNew(sink).catch(end.reject);
  }
  return true;
}

function idsOf({ attempts }: PolledRows, id: string): ReadonlySet<string> {
  return new Set(attempts.get(id)?.map((one) => one.id));
}
