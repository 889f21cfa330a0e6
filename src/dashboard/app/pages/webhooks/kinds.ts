import type { DeliveryKind } from "./data/reads.ts";

interface Kind {
  readonly kind: DeliveryKind;
  readonly title: string;
  readonly short: string;
  /** It says in the empty slot what the kind is good for. */
  readonly purpose: string;
}

/** Every partner has one slot of each. */
export const KINDS: readonly Kind[] = [
  {
    kind: "immediate",
    title: "Immediate",
    short: "Each event as soon as it happens, in order.",
    purpose:
      "We POST every event to your endpoint within moments, strictly in order, and try again when it fails. Right for live dashboards, alerts and anything that reacts to a review.",
  },
  {
    kind: "batch",
    title: "Batch",
    short: "All review events of the last hours, at fixed times.",
    purpose:
      "Every few hours we POST what happened to reviews since the last time, one event per request. Right for nightly imports, reports and quiet systems.",
  },
];

export function kindTitle(kind: DeliveryKind): string {
  return kind === "batch" ? "Batch" : "Immediate";
}
