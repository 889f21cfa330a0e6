import { counted, duration } from "../../ui/format.ts";

interface Shard {
  readonly id: number;
  readonly dispatcher_id: string | null;
  readonly subscriptions: number;
  readonly lag_s: number;
}

interface Observed {
  readonly dispatchers: readonly {
    readonly id: string;
    readonly silent_ms: number;
    readonly outage: string | null;
  }[];
  readonly shards: readonly Shard[];
  readonly lag: { readonly lag_s: number };
  readonly blocked_heads: readonly { readonly subscription_id: string }[];
  readonly disabled_subscriptions: readonly unknown[];
  readonly quarantined_lanes: readonly unknown[];
  readonly mails: { readonly queued: number; readonly next_due_at: string | null };
}

/** Time in ms after which a dispatcher without a heartbeat loses its lease, and with it all its shards. */
const SILENT_MS = 4_000;
const LATE_S = 10;
const MAILS_LATE_MS = 60_000;

/** A problem in a sentence, with the title of the panel that shows it, if there is one. */
export interface Problem {
  readonly text: string;
  readonly panel?: string;
}

const problem = (isThere: boolean, text: string, panel?: string): readonly Problem[] =>
  isThere ? [{ text, ...(panel !== undefined && { panel }) }] : [];

/**
 * Describes every current problem of event delivery, the most urgent problem first. Returns an empty list if there is
 * no problem.
 */
export function problemsOf(state: Observed, now: number): Problem[] {
  const { dispatchers, shards, lag, blocked_heads, disabled_subscriptions, mails } = state;
  const quarantined = state.quarantined_lanes.length;
  const silent = dispatchers.filter((one) => one.silent_ms > SILENT_MS).length;
  const free = shards.filter((one) => one.dispatcher_id === null).length;
  const mailsWaitMs = mails.next_due_at === null ? 0 : now - Date.parse(mails.next_due_at);
  const isStopped = dispatchers.length === 0;
  const blocked = new Set(blocked_heads.map((one) => one.subscription_id)).size;
  return [
    ...problem(
      isStopped,
      "No dispatcher is running: nothing is delivered until you start one.",
      PANELS.dispatchers,
    ),
    ...problem(
      silent > 0,
      `${counted(silent, "dispatcher")} sent no heartbeat; other dispatchers take over.`,
      PANELS.dispatchers,
    ),
    ...[...new Set(dispatchers.flatMap(({ outage }) => outage ?? []))].flatMap((outage) =>
      problem(true, outageText(outage), PANELS.dispatchers),
    ),
    ...problem(
      !isStopped && free > 0,
      `${counted(free, "shard")} of ${shards.length} without a dispatcher.`,
      PANELS.shards,
    ),
    ...problem(
      quarantined > 0,
      `${counted(quarantined, "lane")} quarantined: a failure here, not at the receiver, stops it.`,
      PANELS.quarantined,
    ),
    ...problem(
      lag.lag_s > LATE_S,
      `An event that could be sent waits for ${duration(lag.lag_s)} already.`,
      PANELS.backlogs,
    ),
    ...problem(
      mailsWaitMs > MAILS_LATE_MS,
      `${counted(mails.queued, "mail")} queued, the first due ${duration(mailsWaitMs / 1_000)} ago. Check the mail server.`,
    ),
    ...problem(
      blocked > 0,
      `${counted(blocked, "subscription waits", "subscriptions wait")} for the retry of a failed event.`,
      PANELS.blocked,
    ),
    ...problem(
      disabled_subscriptions.length > 0,
      `${counted(disabled_subscriptions.length, "subscription")} disabled with held events.`,
      PANELS.disabled,
    ),
  ];
}

/** Titles of the panels of the dispatcher page, to which the problems link. */
export const PANELS = {
  backlogs: "Backlog by subscription",
  blocked: "Blocking events",
  disabled: "Disabled subscriptions",
  quarantined: "Quarantined lanes",
  dispatchers: "Dispatchers",
  shards: "Shards",
} as const;

const OUTAGE_WORDS: Readonly<Record<string, string>> = {
  machine: "The machine has no free file descriptors, ports or memory",
  proxy: "The egress proxy is unreachable or rejects the dispatcher",
  policy: "The egress proxy or a firewall blocks connections to receivers",
  names: "The name servers do not respond",
  network: "No receiver is reachable over the network",
};

export function outageText(part: string): string {
  const what = OUTAGE_WORDS[part] ?? "The dispatcher cannot reach receivers";
  return `${what}: attempts wait and do not count as failures.`;
}

type Lateness = "none" | "late" | "very-late";

export function latenessOf({ lag_s: lagS }: Pick<Shard, "lag_s">): Lateness {
  if (lagS > 60) return "very-late";
  return lagS > LATE_S ? "late" : "none";
}

/**
 * Assigns a letter from A to Z to each dispatcher, in the order of their ids. With more than 26 dispatchers,
 * which is not expected, several dispatchers share a letter.
 */
export function lettersOf(dispatchers: readonly { readonly id: string }[]): Map<string, string> {
  const ids = dispatchers.map(({ id }) => id).toSorted();
  return new Map(ids.map((id, i) => [id, String.fromCodePoint(65 + (i % 26))]));
}

/** Returns the target of links to a panel. */
export const targetOf = (panel: string): string => panel.toLowerCase().replaceAll(" ", "-");
