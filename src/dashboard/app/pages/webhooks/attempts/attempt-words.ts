import type { Outcome } from "../data/attempt-rows.ts";
import type { Delivery } from "../data/reads.ts";

export const OUTCOME_WORDS: Readonly<Record<Outcome, string>> = {
  delivered: "Delivered",
  retry: "Tries again",
  failed: "Failed",
  interrupted: "Interrupted",
};

/** State of a delivery → where the event stands, and what comes next. */
export const STATE_WORDS: Readonly<Record<Delivery["state"], string>> = {
  pending: "It is in the queue. Its attempt comes as soon as those before it are done.",
  waiting: "An attempt failed; the next one comes by itself.",
  held: "The subscription is disabled. The event is kept until it is enabled.",
  delivered: "Your endpoint took it.",
  failed: "All attempts failed, and no more come. Redeliver sends it again.",
  skipped: "It was taken out of the queue and is not sent. Redeliver sends it after all.",
};
