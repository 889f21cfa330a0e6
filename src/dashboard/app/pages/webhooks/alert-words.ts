import type { AlertKind } from "./data/alerts.ts";

interface AlertWords {
  readonly kind: AlertKind;
  readonly label: string;
  readonly description: string;
  /** It says what was told, behind an instant. */
  readonly told: string;
}

/** In the order in which trouble grows. */
export const ALERT_WORDS: readonly AlertWords[] = [
  {
    kind: "head_retrying",
    label: "An event failed twice and waits",
    description: "It holds back those behind it: the earliest sign of trouble.",
    told: "an event failed twice and waits",
  },
  {
    kind: "oldest_waiting",
    label: "An event waits too long",
    description: "Also where nothing fails, but your endpoint is slower than events come.",
    told: "events wait too long",
  },
  {
    kind: "failures_5",
    label: "5 failures in a row",
    description: "Each is an event that was given up after its four attempts, or answered 410.",
    told: "5 failures in a row",
  },
  {
    kind: "failures_10",
    label: "10 failures in a row",
    description: "Half of what disables a subscription.",
    told: "10 failures in a row",
  },
  {
    kind: "failures_18",
    label: "18 failures in a row",
    description: "Two more disable it.",
    told: "18 failures in a row",
  },
  {
    kind: "disabled",
    label: "Disabled",
    description: "Always told: nothing is sent from then on.",
    told: "disabled",
  },
  {
    kind: "recovered",
    label: "Recovered",
    description: "Your endpoint has answered 2xx again.",
    told: "recovered",
  },
];

export function toldWords(kind: string): string {
  return ALERT_WORDS.find((one) => one.kind === kind)?.told ?? kind;
}
