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

/** One change of a review or a connection, whoever makes it. A change that has an effect becomes rows of review_history. */
export interface Change {
  /** Its position in the request, for field errors. */
  readonly index: number;
  /** The id that the sender gave to it, unique per sender for ever; undefined if the sender gives none. */
  readonly id: string | undefined;
  readonly subject: Subject;
  readonly what: What;
  readonly occurredAt: Date;
}

/** A review by our id; a connection; or a review by its connection and the id that the site gave to it. */
export type Subject =
  | { readonly reviewId: number }
  | { readonly siteId: number; readonly externalReviewId?: string };

export type What =
  /** The text and rating of a review. Only a report that `creates` makes a new review or restores a removed one. */
  | { readonly kind: "report"; readonly creates: boolean; readonly review: ReportedReview }
  /** An event of the catalog. A posting that is `announced` is followed by the mail to the reviewer (contract 9.5). */
  | {
      readonly kind: "event";
      readonly event: RecordedAction["event"];
      readonly metadata: Readonly<Record<string, unknown>>;
      readonly errorCode: string | null;
      readonly isAnnounced: boolean;
    }
  /** The command of a person, from which the state of the review makes an event, or which it refuses. */
  | { readonly kind: "command"; readonly decide: Rule };

/** Decides about the command of a person by the locked review. */
export type Rule = (review: ReviewState, act: Act) => ReviewDecision;

/** How a request was verified: with which sealed secret, and whether its signature covered a timestamp. */
export interface Signed {
  readonly sealedSecret: string;
  readonly isTimed: boolean;
}

/** The events of a provider's request as they were read. */
export interface ReadEvents {
  /** The events that have no field errors. */
  readonly changes: readonly Change[];
  /** One reference for each event that is an object, valid or not. */
  readonly references: readonly Reference[];
  /** Every bad field of every event, as `events.3.review.rate` (contract 9.1). */
  readonly fieldErrors: FieldErrors;
}

/**
 * The references of an event to a connection and a review. They are looked up even if the event has other errors. A
 * part is undefined if it is malformed, missing or not a field of the event's type.
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
  /** Maps each text of the request to the profane words in it. */
  readonly profanity: ReadonlyMap<string, readonly string[]>;
  /** The connections named in the request, by their ids. Their axes are as they were when they were first read. */
  readonly sites: ReadonlyMap<number, Site>;
  /** The characters of its texts, which bound a batch. */
  readonly chars: number;
}

/** The valid actions of one request of a service, or one row of the inbox. */
export interface ServiceRequest {
  readonly sender: "service";
  readonly serviceId: number;
  /** The partners for which the service acts; null for all. */
  readonly actsForPartners: readonly number[] | null;
  readonly actions: readonly Action[];
  readonly changes: readonly Change[];
  readonly chars: number;
}

/** The action of a person on a review of its account. */
export interface AccountRequest {
  readonly sender: "account";
  readonly partnerId: number;
  readonly reviewId: number;
  readonly actor: RecordedAction["actor"];
  readonly at: Date;
  readonly chars: number;
  /** Reads what the decision needs besides the review, in the transaction that locks it. */
  readonly read: (tx: Tx) => Promise<Rule>;
}

export type IntakeRequest = ProviderRequest | ServiceRequest | AccountRequest;

/** The decision about one request: all of its changes are taken, or none. */
export type Decision =
  | {
      readonly kind: "accepted";
      /** The number of changes with new ids, and how many of these had no effect. */
      readonly accepted: number;
      readonly unchanged: number;
      /** The review after the action of a person. */
      readonly review?: ReviewState;
    }
  /** The request needs a lock that another transaction holds, or the provider's secret has changed. */
  | { readonly kind: "deferred"; readonly reason: "sequence" | "row" | "secret" }
  | { readonly kind: "refused"; readonly code: ProblemCode; readonly errors?: FieldErrors }
  /** The service does not act for these partners. */
  | { readonly kind: "foreign"; readonly partnerIds: readonly number[] };

/** The result of one request. Its changes are written only if it was accepted. */
export type RequestResult =
  | Decision
  /**
   * The batch could not be written. `lost` is what it decided, if the answer to its commit was lost. If it decided without a
   * look-up, `eventId` is an event that exists only if the commit took effect.
   */
  | {
      readonly kind: "deferred";
      readonly reason: "write";
      readonly lost?: Decision;
      readonly eventId?: string | undefined;
    };

/**
 * Returns the partners that own what these requests name, each once and in their order. Those of services are not among them:
 * a service names reviews and connections by their ids alone.
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

/** Returns the error that a request is answered with if it was not accepted. */
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

/** Identifies a review that may not have an id of ours yet. */
export function reviewKey(siteId: number, externalReviewId: string): Key<"review"> {
  return keyOf("review", siteId, externalReviewId);
}

/** Identifies a change by its sender and the id that the sender gave to it. */
export type Claim = Key<"provider-event" | "action">;

export function claimOf(
  request: Pick<ProviderRequest, "sender" | "slug"> | Pick<ServiceRequest, "sender" | "serviceId">,
  id: string,
): Claim {
  return request.sender === "provider"
    ? keyOf("provider-event", request.slug, id)
    : keyOf("action", request.serviceId, id);
}
