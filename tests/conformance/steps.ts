import * as fc from "fast-check";

import { PARTNERS, REVIEWS, type Partner } from "./tested-store.ts";

/**
 * A choice from a list that is known only when the step is taken. A sequence stays valid when fast-check omits some of
 * its steps to find the shortest failing one.
 */
export type Draw = number;

/** One of the two slots of a partner. */
export interface Slot {
  readonly partner: Partner;
  readonly kind: "immediate" | "batch";
}

export interface DrawnOutcome {
  readonly subscription: Draw;
  readonly entry: Draw;
  readonly kind: "delivered" | "failed" | "retry" | "interrupted";
  readonly delayMs: number;
  /** The record belongs to an earlier attempt, or to an entry that has ended. */
  readonly isLate: boolean;
  /** The entry was read before the offset passed it. */
  readonly isEarly: boolean;
}

/** One step of a random sequence. */
export type Step =
  | {
      readonly kind: "append";
      /** A review, or null for an event about a site. */
      readonly events: readonly { readonly partner: Partner; readonly review: number | null }[];
    }
  | { readonly kind: "commit"; readonly dispatcher: Draw; readonly outcomes: DrawnOutcome[] }
  | { readonly kind: "repeat"; readonly dispatcher: Draw }
  | {
      readonly kind: "create";
      readonly slot: Slot;
      readonly shard: Draw;
      readonly failures: number;
      readonly ordering: "subscription" | "review";
      readonly sequenceHeaders: boolean;
    }
  | { readonly kind: "remove"; readonly slot: Slot }
  | { readonly kind: "enable"; readonly slot: Slot; readonly held: "deliver" | "skip" }
  | { readonly kind: "test"; readonly slot: Slot }
  | { readonly kind: "redeliver"; readonly slot: Slot; readonly event: Draw }
  | {
      readonly kind: "reorder";
      readonly partner: Partner;
      readonly ordering: "subscription" | "review";
    }
  | { readonly kind: "renumber"; readonly partner: Partner; readonly sequenceHeaders: boolean }
  | { readonly kind: "batch"; readonly dispatcher: Draw; readonly partner: Partner }
  | {
      readonly kind: "load";
      readonly subscription: Draw;
      readonly after: number;
      readonly limit: number;
      readonly except: readonly Draw[];
    }
  | { readonly kind: "sweep" }
  | { readonly kind: "pass"; readonly ms: number }
  | { readonly kind: "join" }
  | { readonly kind: "renew"; readonly dispatcher: Draw; readonly watchful: boolean }
  | {
      readonly kind: "release";
      readonly dispatcher: Draw;
      readonly count: number;
      /** The claims are older than the present ones. */
      readonly isLate: boolean;
    }
  | { readonly kind: "leave"; readonly dispatcher: Draw };

const draw = fc.nat({ max: 10_000 });
const partner = fc.constantFrom(...PARTNERS);
const slot = fc.record({ partner, kind: fc.constantFrom("immediate", "batch") });
const ordering = fc.constantFrom("subscription", "review");
const seldom = fc.nat({ max: 19 }).map((n) => n === 0);
const is = <Kind extends Step["kind"]>(kind: Kind) => fc.constant(kind);

const drawnEvent = fc.record({
  partner,
  review: fc.oneof(
    { weight: 5, arbitrary: fc.nat({ max: REVIEWS - 1 }) },
    { weight: 1, arbitrary: fc.constant(null) },
  ),
});

const outcome: fc.Arbitrary<DrawnOutcome> = fc.record({
  subscription: draw,
  entry: draw,
  kind: fc.constantFrom(
    ...(["failed", "failed", "failed", "failed", "delivered", "delivered", "retry"] as const),
    "interrupted",
  ),
  delayMs: fc.constantFrom(0, 500, 3_000),
  isLate: seldom,
  isEarly: fc.boolean(),
});

/** The kinds of steps, weighted by frequency. */
const step: fc.Arbitrary<Step> = fc.oneof(
  of(8, { kind: is("append"), events: fc.array(drawnEvent, { minLength: 1, maxLength: 6 }) }),
  of(10, {
    kind: is("commit"),
    dispatcher: draw,
    outcomes: fc.array(outcome, { minLength: 1, maxLength: 12 }),
  }),
  of(2, { kind: is("repeat"), dispatcher: draw }),
  of(3, createIn(slot)),
  of(1, { kind: is("remove"), slot }),
  of(4, { kind: is("enable"), slot, held: fc.constantFrom("deliver", "skip") }),
  of(2, { kind: is("test"), slot }),
  of(2, { kind: is("redeliver"), slot, event: draw }),
  of(1, { kind: is("reorder"), partner, ordering }),
  of(1, { kind: is("renumber"), partner, sequenceHeaders: fc.boolean() }),
  of(4, { kind: is("batch"), dispatcher: draw, partner }),
  of(5, {
    kind: is("load"),
    subscription: draw,
    after: fc.nat({ max: 12 }),
    limit: fc.constantFrom(0, 1, 3, 64),
    except: fc.array(draw, { maxLength: 2 }),
  }),
  of(2, { kind: is("sweep") }),
  of(4, { kind: is("pass"), ms: fc.constantFrom(1, 400, 1_500, 2_500, 6_000) }),
  of(2, { kind: is("join") }),
  of(5, { kind: is("renew"), dispatcher: draw, watchful: fc.boolean() }),
  of(1, { kind: is("release"), dispatcher: draw, count: fc.nat({ max: 40 }), isLate: seldom }),
  of(1, { kind: is("leave"), dispatcher: draw }),
);

function createIn(which: fc.Arbitrary<Slot>) {
  return {
    kind: is("create"),
    slot: which,
    shard: draw,
    failures: fc.constantFrom(0, 17, 19, 19),
    ordering,
    // More often on, because only then loads have numbers.
    sequenceHeaders: fc.constantFrom(true, true, false),
  };
}

function of<T>(weight: number, fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) {
  return { weight, arbitrary: fc.record(fields) as fc.Arbitrary<T> };
}

/** The number of steps of one sequence. */
const LENGTH = 60;

/** The first steps: all slots are filled, and two dispatchers have their shares. */
const opening: fc.Arbitrary<Step[]> = fc.tuple(
  ...PARTNERS.flatMap((owner) =>
    (["immediate", "batch"] as const).map((kind) =>
      fc.record(createIn(fc.constant({ partner: owner, kind }))),
    ),
  ),
  ...[0, 1].flatMap((dispatcher) => [
    fc.record({ kind: is("join") }),
    fc.record({
      kind: is("renew"),
      dispatcher: fc.constant(dispatcher),
      watchful: fc.constant(false),
    }),
  ]),
);

/** Random sequences. A step that fast-check omits while it shrinks is undefined. */
export const sequences: fc.Arbitrary<(Step | undefined)[]> = fc
  .tuple(
    opening,
    fc.array(fc.option(step, { nil: undefined, freq: 30 }), {
      minLength: LENGTH,
      maxLength: LENGTH,
    }),
  )
  .map(([first, then]) => [...first, ...then]);
