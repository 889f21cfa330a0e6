import type { Tx } from "../../db/client.ts";
import { type Key, keyOf } from "../lib/kind-key.ts";
import {
  type FieldErrors,
  invalid,
  Problem,
  type ProblemCode,
  unavailable,
} from "../lib/problem.ts";
import type { RecordedAction } from "../outbox/event.ts";
import type { Act } from "../reviews/events.ts";
import type { ReviewDecision } from "./account-rules.ts";
import type { ProviderEventType, ReportedReview } from "./provider-model.ts";
import type { ReviewState, Site } from "./queries/look-up.ts";
import type { Action } from "./service-model.ts";

/**
 * One change of a review or a connection, by any kind of sender. A change that has an effect becomes rows of
 * review_history.
 */
export interface Change {
  /** The position of the change in the request, which field errors contain. */
  readonly index: number;
  /** The id that the sender gave to the change. It is unique per sender forever; undefined if the sender gives none. */
  readonly id: string | undefined;
  readonly subject: Subject;
  readonly what: What;
  readonly occurredAt: Date;
}

/** A review by its id, a connection, or a review by its connection and the id that the site gave to it. */
export type Subject =
  | { readonly reviewId: number }
  | { readonly siteId: number; readonly externalReviewId?: string };

export type What =
  /** The text and rating of a review. Only a report with `creates` creates a review or restores a removed one. */
  | { readonly kind: "report"; readonly creates: boolean; readonly review: ReportedReview }
  /**
   * An event of the catalog. If `isAnnounced` is set, a posting is followed by the mail to the reviewer (contract 9.5).
   */
  | {
      readonly kind: "event";
      readonly event: RecordedAction["event"];
      readonly metadata: Readonly<Record<string, unknown>>;
      readonly errorCode: string | null;
      readonly isAnnounced: boolean;
    }
  /** An action of a user. `decide` derives an event from the state of the review, or refuses the action. */
  | { readonly kind: "command"; readonly decide: Rule };

/** Decides about a user's action, given the locked state of the review. */
export type Rule = (review: ReviewState, act: Act) => ReviewDecision;

/** How a request was verified: the sealed secret that was used, and whether the signature covered a timestamp. */
export interface Signed {
  readonly sealedSecret: string;
  readonly isTimed: boolean;
}

/** The events of a provider's request after validation. */
export interface ReadEvents {
  /** The events that have no field errors. */
  readonly changes: readonly Change[];
  /** One reference for each event that is an object, valid or not. */
  readonly references: readonly Reference[];
  /** The errors of every invalid field of every event, by paths such as `events.3.review.rate` (contract 9.1). */
  readonly fieldErrors: FieldErrors;
}

/**
 * The references of an event to a connection and a review. They are looked up even if the event has other errors. A
 * reference is undefined if it is malformed, missing or not a field of the event's type.
 */
export interface Reference {
  readonly index: number;
  readonly type: ProviderEventType | undefined;
  readonly id: string | undefined;
  readonly siteId: number | undefined;
  readonly externalReviewId: string | undefined;
}

/** The events of one request of a provider. */
export interface ProviderRequest {
  readonly sender: "provider";
  readonly slug: string;
  readonly signed: Signed;
  readonly read: ReadEvents;
  /** Maps each text of the request to its profane words. */
  readonly profanity: ReadonlyMap<string, readonly string[]>;
  /**
   * The connections that the request refers to, by their ids. They may come from a cache, so the state of their axes
   * may be outdated.
   */
  readonly sites: ReadonlyMap<number, Site>;
  /** The number of characters in its texts; batches are limited by this number. */
  readonly chars: number;
}

/** The valid actions of one request of a service, or of one row of the inbox. */
export interface ServiceRequest {
  readonly sender: "service";
  readonly serviceId: number;
  /** The partners for which the service acts; null if it acts for all partners. */
  readonly actsForPartners: readonly number[] | null;
  readonly actions: readonly Action[];
  readonly changes: readonly Change[];
  readonly chars: number;
}

/** A user's action on a review of the user's account. */
export interface AccountRequest {
  readonly sender: "account";
  readonly partnerId: number;
  readonly reviewId: number;
  readonly actor: RecordedAction["actor"];
  readonly at: Date;
  readonly chars: number;
  /** Reads the further data that the decision needs, in the transaction that locks the review. */
  readonly read: (tx: Tx) => Promise<Rule>;
}

export type IntakeRequest = ProviderRequest | ServiceRequest | AccountRequest;

/** The decision about one request. Either all changes of the request are accepted, or none. */
export type Decision =
  | {
      readonly kind: "accepted";
      /** The number of changes with new ids, and the number of these that had no effect. */
      readonly accepted: number;
      readonly unchanged: number;
      /** The state of the review after a user's action. */
      readonly review?: ReviewState;
    }
  /** The request needs a lock that another transaction holds, or the provider's secret was changed. */
  | { readonly kind: "deferred"; readonly reason: "sequence" | "row" | "secret" }
  | { readonly kind: "refused"; readonly code: ProblemCode; readonly errors?: FieldErrors }
  /** The service does not act for these partners. */
  | { readonly kind: "foreign"; readonly partnerIds: readonly number[] };

/** The result of one request. Its changes are written only if it was accepted. */
export type RequestResult =
  | Decision
  /**
   * The batch could not be written. If the response to its commit was lost, `lost` is the decision about the request.
   * If the batch was decided without a look-up, `eventId` is an event that exists only if the commit took effect.
   */
  | {
      readonly kind: "deferred";
      readonly reason: "write";
      readonly lost?: Decision;
      readonly eventId?: string | undefined;
    };

/**
 * Returns the distinct partners of the rows that these requests refer to, in ascending order. Requests of services are
 * ignored, because they contain only the ids of reviews and connections.
 */
export function partnersOf(requests: readonly IntakeRequest[]): number[] {
  const all = requests.flatMap((request) => {
    if (request.sender === "account") return [request.partnerId];
    return request.sender === "provider"
      ? [...request.sites.values()].map((one) => one.partnerId)
      : [];
  });
  return [...new Set(all)].toSorted((a, b) => a - b);
}

/** Returns the error for a request that was not accepted. */
export function refusalOf(decision: Exclude<Decision, { kind: "accepted" }>): Problem {
  switch (decision.kind) {
    case "deferred":
      return unavailable();
    case "foreign":
      return new Problem("forbidden");
    case "refused": {
      const { code, errors } = decision;
      return errors === undefined ? new Problem(code) : invalid(errors);
    }
  }
}

/** Returns the key of a review that may not have an id yet. */
export function reviewKey(siteId: number, externalReviewId: string): Key<"review"> {
  return keyOf("review", siteId, externalReviewId);
}

/** The key of a change: its sender, and the id that the sender gave to it. */
export type Claim = Key<"provider-event" | "action">;

export function claimOf(
  request: Pick<ProviderRequest, "sender" | "slug"> | Pick<ServiceRequest, "sender" | "serviceId">,
  id: string,
): Claim {
  return request.sender === "provider"
    ? keyOf("provider-event", request.slug, id)
    : keyOf("action", request.serviceId, id);
}
