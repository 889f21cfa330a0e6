import type { Decision } from "../../dispatcher/actor/decide.ts";
import type {
  ActorEvent,
  Effect,
  Entry,
  LoadRequest,
  Subscription,
} from "../../dispatcher/actor/event.ts";
import type { InDoubtAttempts } from "../../dispatcher/actor/in-doubt.ts";
import { Actor } from "../../dispatcher/actor/state.ts";
import { step } from "../../dispatcher/actor/step.ts";
import { testFactsOf } from "../../src/outbox/test-event.ts";

export const start = new Date("2026-06-01T12:00:00.000Z");
export const later = (ms: number) => new Date(start.getTime() + ms);

export const subscription: Subscription = {
  partnerId: 1,
  webhookUrl: "https://receiver.example/hook",
  ordering: "subscription",
  secret: "secret",
  previousSecret: null,
  standardWebhooks: false,
  settledLimit: null,
  headers: null,
  nextBatchAt: null,
  pendingTestEventId: null,
  consecutiveFailureCount: 0,
  erasures: 0,
  inactiveAccounts: "{}",
};

export function entry(sequence: number, overrides: Partial<Entry> = {}): Entry {
  const id = { eventId: `E${sequence}`, event: "review_received", recordedAt: start };
  return {
    ...id,
    sequence,
    isLogged: true,
    isTest: false,
    payloadMode: "full",
    reviewId: 1,
    batchJobId: null,
    round: 1,
    attempt: 1,
    dueAt: null,
    isFirstOnly: overrides.dueAt != null,
    bytes: 0,
    number: null,
    settledBefore: 0,
    facts: testFactsOf(id, 1),
    ...overrides,
  };
}

export const kinds = (effects: readonly Effect[]) => effects.map((effect) => effect.kind);

export const sends = (effects: readonly Effect[]) =>
  effects.filter((effect) => effect.kind === "send");

export const sent = (effects: readonly Effect[]) =>
  sends(effects).map((effect) => effect.entry.sequence);

/** Finds the load that the effects request; throws if there is none. */
export function load(effects: readonly Effect[]): LoadRequest {
  const found = effects.find((effect) => effect.kind === "load");
  if (found === undefined) throw new Error(`No load in ${kinds(effects).join(", ")}`);
  return found.request;
}

export interface Found {
  readonly entries?: readonly Entry[];
  readonly tests?: readonly Entry[];
  readonly settings?: Partial<Subscription>;
  readonly lastSequence?: number;
}

/** An actor without a dispatcher around it. Its clock moves only when a test sets `now`. */
export class DrivenActor {
  readonly actor: Actor;
  now = start;

  constructor(inDoubt?: InDoubtAttempts) {
    this.actor = new Actor("S", 1, inDoubt);
  }

  tell(event: ActorEvent): Effect[] {
    return step(this.actor, event, this.now);
  }

  wake(): Effect[] {
    return this.tell({ kind: "woken" });
  }

  /** Answers a load request. Without `found` the subscription counts as inactive. */
  show(request: LoadRequest, found?: Found): Effect[] {
    const { entries = [], tests = [], settings, lastSequence = 0 } = found ?? {};
    const shown = { subscription: { ...subscription, ...settings }, entries, tests, lastSequence };
    return this.tell({ kind: "loaded", loaded: { request, found: found && shown } });
  }

  /** Wakes the actor and answers its load. */
  loaded(found: Found): Effect[] {
    return this.show(load(this.wake()), found);
  }

  answer(lane: string, decision: Decision = { kind: "delivered" }): Effect[] {
    return this.tell({ kind: "answered", lane, decision });
  }

  commit(lane: string, decision: Decision = { kind: "delivered" }): Effect[] {
    return this.tell({ kind: "committed", lane, decision, active: true });
  }

  /** Ends the POST that is under way in a lane with a decision, and commits the attempt. */
  end(lane: string, decision?: Decision): Effect[] {
    return [...this.answer(lane, decision), ...this.commit(lane, decision)];
  }
}
