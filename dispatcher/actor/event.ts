import type { Decision } from "./decide.ts";
import type { Entry, Subscription } from "./entry.ts";

export interface LoadRequest {
  readonly id: string;
  readonly shard: number;
  readonly generation: number;
  readonly after: number;
  /** How many entries at the most, tests apart; 0 to read the settings and tests alone. */
  readonly limit: number;
  /** Reviews with a lane in memory; null stands for the lane of events without a review. */
  readonly exceptReviews: readonly (number | null)[];
}

/** The answer to a load; `found` is absent if the subscription is not active. */
export interface Loaded {
  readonly request: LoadRequest;
  readonly found:
    | {
        readonly subscription: Subscription;
        readonly entries: readonly Entry[];
        readonly tests: readonly Entry[];
      }
    | undefined;
}

export type ActorEvent =
  | { readonly kind: "woken" }
  | { readonly kind: "rechecked" }
  | { readonly kind: "loaded"; readonly loaded: Loaded }
  /** A send that was never begun. */
  | { readonly kind: "unsent"; readonly lane: string }
  /** A send that failed on our side, before anything reached the receiver. */
  | { readonly kind: "postponed"; readonly lane: string; readonly until: Date }
  | { readonly kind: "answered"; readonly lane: string; readonly decision: Decision }
  /** `active`: whether the subscription still is, after the commit. */
  | {
      readonly kind: "committed";
      readonly lane: string;
      readonly decision: Decision;
      readonly active: boolean;
    }
  | { readonly kind: "batched" }
  | { readonly kind: "stopped" };

export type Effect =
  | { readonly kind: "load"; readonly request: LoadRequest }
  | {
      readonly kind: "send";
      readonly lane: string;
      readonly entry: Entry;
      readonly subscription: Subscription;
      /** When the subscription was read: see `isFresh`. */
      readonly readAt: Date;
    }
  | { readonly kind: "batch" }
  | { readonly kind: "recheck"; readonly afterMs: number }
  | { readonly kind: "sleep"; readonly until: Date }
  | { readonly kind: "drop" };
