import { type Claim, LEASE_TTL_MS } from "../../dispatcher/shards/lease-queries.ts";
import { SHARDS } from "../../src/outbox/schedule.ts";
import type { Draw, DrawnOutcome, Slot, Step } from "./steps.ts";
import type { QueuedEntry } from "./tables.ts";
import { REVIEWS, type Outcome, type Partner } from "./tested-store.ts";
import type { TwoStores } from "./two-stores.ts";

/** The highest attempt number of an entry. */
const ATTEMPTS = 4;
const MOST_DISPATCHERS = 3;

/** Takes the steps of a random sequence on both stores, and omits a step that has no target. */
export class Sequence {
  readonly #stores: TwoStores;
  /** The subscription of each slot, by partner and kind. */
  readonly #slots = new Map<string, string>();
  readonly #partners = new Map<string, Partner>();
  #lastGroup: { readonly outcomes: Outcome[]; readonly by: string } | undefined;

  /** Every entry that was read from the log. */
  readonly #logged = new Map<string, QueuedEntry>();

  constructor(stores: TwoStores) {
    this.#stores = stores;
  }

  /** Takes a step; returns whether it changed the tables, only asked, or had no target. */
  async take(step: Step): Promise<"changed" | "asked" | "omitted"> {
    const { calls, tables } = this.#stores;
    await this.#take(step);
    if (this.#stores.calls === calls) return "omitted";
    return Bun.deepEquals(this.#stores.tables, tables) ? "asked" : "changed";
  }

  async #take(step: Step): Promise<unknown> {
    for (const { name, queued } of this.#stores.tables.subscriptions)
      for (const entry of queued)
        if (entry.isLogged) this.#logged.set(`${name} ${entry.sequence}`, entry);
    switch (step.kind) {
      case "append":
        return this.#stores.append(
          step.events.map((event) => ({ ...event, name: this.#stores.newName("EVENT") })),
        );
      case "commit":
        return this.#commit(step);
      case "repeat":
        return this.#repeat();
      case "pass":
        return this.#stores.pass(step.ms);
      case "sweep":
        return this.#stores.sweep(Array.from({ length: SHARDS }, (_, shard) => shard));
      case "load":
        return this.#load(step);
      case "batch":
        return this.#dispatchBatch(step);
      case "create":
      case "remove":
      case "enable":
      case "test":
      case "redeliver":
        return this.#change(step);
      case "reorder": {
        const name = this.#slots.get(keyOf({ partner: step.partner, kind: "immediate" }));
        return name !== undefined && this.#stores.reorder(name, step.ordering);
      }
      case "renumber": {
        const name = this.#slots.get(keyOf({ partner: step.partner, kind: "immediate" }));
        return name !== undefined && this.#stores.renumber(name, step.sequenceHeaders);
      }
      case "join":
      case "renew":
      case "release":
      case "leave":
        return this.#lease(step);
    }
  }

  async #change(
    step: Step & { kind: "create" | "remove" | "enable" | "test" | "redeliver" },
  ): Promise<unknown> {
    const name = this.#slots.get(keyOf(step.slot));
    if (step.kind === "create") return name === undefined && this.#create(step);
    if (name === undefined) return undefined;
    switch (step.kind) {
      case "remove":
        this.#slots.delete(keyOf(step.slot));
        return this.#stores.remove(name);
      case "enable":
        return this.#stores.enable(name, step.held);
      case "test":
        return this.#stores.sendTest(name, this.#stores.newName("TEST"));
      case "redeliver": {
        const { queued, ended } = this.#stores.subscription(name);
        const event = pick([...queued, ...ended], step.event)?.event;
        return event !== undefined && this.#stores.redeliver(name, event);
      }
    }
  }

  async #create({ slot, shard, ...fields }: Step & { kind: "create" }): Promise<void> {
    const name = this.#stores.newName(slot.kind === "batch" ? "BATCH" : "NOW");
    this.#slots.set(keyOf(slot), name);
    this.#partners.set(name, slot.partner);
    await this.#stores.create({
      ...slot,
      name,
      failures: fields.failures,
      shard: shard % SHARDS,
      intervalHours: 1 + (shard % 2),
      ordering: slot.kind === "batch" ? "subscription" : fields.ordering,
      sequenceHeaders: slot.kind === "immediate" && fields.sequenceHeaders,
    });
  }

  async #commit({ dispatcher, outcomes }: Step & { kind: "commit" }): Promise<void> {
    const by = pick(this.#stores.tables.dispatchers, dispatcher) ?? "nobody";
    const group = outcomes.flatMap((one) => this.#outcomeOf(one) ?? []);
    if (group.length === 0) return;
    this.#lastGroup = { outcomes: group, by };
    await this.#stores.commit(by, this.#lastGroup.outcomes);
  }

  #outcomeOf(drawn: DrawnOutcome): Outcome | undefined {
    const queueing = this.#stores.tables.subscriptions.filter(({ queued }) => queued.length > 0);
    const subscription = pick(queueing, drawn.subscription);
    const entry =
      (drawn.isLate && drawn.isEarly && this.#endedOf(subscription?.name, drawn.entry)) ||
      pick(subscription?.queued ?? [], drawn.entry);
    if (subscription === undefined || entry === undefined) return undefined;
    const wasLogged = this.#logged.has(`${subscription.name} ${entry.sequence}`);
    const isLogged = entry.isLogged || (wasLogged && drawn.isEarly);
    return {
      id: this.#stores.newName("ATTEMPT"),
      subscription: subscription.name,
      event: entry.event,
      isTest: entry.isTest,
      isLogged,
      recordedAtMs: entry.recordedAtMs,
      sequence: entry.sequence,
      round: entry.round,
      // Log entries are always at their first attempt.
      attempt: isLogged ? 1 : attemptOf(entry, drawn),
      kind: drawn.kind === "retry" && entry.attempt === ATTEMPTS ? "failed" : drawn.kind,
      delayMs: drawn.delayMs,
    };
  }

  /** Returns a log event that is not queued any more: another process has sent it, too. */
  #endedOf(name: string | undefined, draw: Draw): QueuedEntry | undefined {
    if (name === undefined) return undefined;
    const { ended } = this.#stores.subscription(name);
    return this.#logged.get(`${name} ${pick(ended, draw)?.sequence}`);
  }

  /** Repeats the last commit, as after a lost response. */
  async #repeat(): Promise<void> {
    const last = this.#lastGroup;
    if (last !== undefined) await this.#stores.commit(last.by, last.outcomes);
  }

  async #load({ subscription, after, limit, except }: Step & { kind: "load" }): Promise<void> {
    const found = pick(this.#stores.tables.subscriptions, subscription);
    if (found === undefined) return;
    const partner = this.#partners.get(found.name);
    const reviews = except.map((n) => {
      const review = n % (REVIEWS + 1);
      return review === REVIEWS ? null : `p${partner} r${review}`;
    });
    await this.#stores.load({ subscription: found.name, after, limit, exceptReviews: reviews });
  }

  async #dispatchBatch({ dispatcher, partner }: Step & { kind: "batch" }): Promise<void> {
    const name = this.#slots.get(keyOf({ partner, kind: "batch" }));
    const by = pick(this.#stores.tables.dispatchers, dispatcher) ?? "nobody";
    if (name !== undefined) await this.#stores.dispatchBatch(by, name);
  }

  async #lease(step: Step & { kind: "join" | "renew" | "release" | "leave" }): Promise<unknown> {
    const { dispatchers } = this.#stores.tables;
    if (step.kind === "join")
      return (
        dispatchers.length < MOST_DISPATCHERS &&
        this.#stores.join(this.#stores.newName("DISPATCHER"))
      );
    const dispatcher = pick(dispatchers, step.dispatcher);
    if (dispatcher === undefined) return undefined;
    switch (step.kind) {
      case "renew":
        return this.#renew(dispatcher, step.watchful);
      case "leave":
        return this.#stores.leave(dispatcher, this.#claimsOf(dispatcher, { count: 40, late: 0 }));
      case "release":
        return this.#release(dispatcher, step);
    }
  }

  async #renew(dispatcher: string, isWatchful: boolean): Promise<void> {
    const renewed = await this.#stores.renew(dispatcher);
    const now = renewed?.now ?? null;
    if (isWatchful)
      for (const other of await this.#stores.heartbeats())
        if ((now ?? 0) - other.renewedMs >= LEASE_TTL_MS) await this.#stores.expire(other);
    await this.#stores.assign(dispatcher);
  }

  async #release(dispatcher: string, { count, isLate }: Step & { kind: "release" }): Promise<void> {
    const claims = this.#claimsOf(dispatcher, { count, late: isLate ? 1 : 0 });
    await this.#stores.release(dispatcher, claims);
  }

  /**
   * Returns the first claims of a dispatcher, or older claims of the same shards. Every other unclean shard has no
   * attempt in doubt any more.
   */
  #claimsOf(
    dispatcher: string,
    { count, late }: { count: number; late: number },
  ): ReadonlyMap<number, Claim> {
    const own = this.#stores.tables.shards.filter(({ owner }) => owner === dispatcher);
    return new Map(
      own.slice(0, count).map(({ shard, epoch, unclean }) => {
        const claim = { epoch: epoch - late, unclean: unclean && shard % 2 === 0 };
        return [shard, claim];
      }),
    );
  }
}

function keyOf({ partner, kind }: Slot): string {
  return `${partner} ${kind}`;
}

function pick<T>(from: readonly T[], draw: Draw): T | undefined {
  return from[draw % from.length];
}

function attemptOf({ attempt }: QueuedEntry, { isLate }: DrawnOutcome): number {
  if (!isLate) return attempt;
  return attempt > 1 ? attempt - 1 : attempt + 1;
}
