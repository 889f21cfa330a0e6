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
  readonly blocked_heads: readonly unknown[];
  readonly disabled_subscriptions: readonly unknown[];
  readonly quarantined_lanes: readonly unknown[];
  readonly mails: { readonly queued: number; readonly next_due_at: string | null };
}

/** Time in ms after which a dispatcher without a heartbeat loses its lease, and with it all its shards. */
const SILENT_MS = 4_000;
const LATE_S = 10;
const MAILS_LATE_MS = 60_000;

/**
 * Describes every current problem of event delivery in a sentence, the most urgent problem first. Returns an
 * empty list if there is no problem.
 */
export function problemsOf(state: Observed, now: number): string[] {
  const { dispatchers, shards, lag, blocked_heads, disabled_subscriptions, mails } = state;
  const quarantined = state.quarantined_lanes.length;
  const silent = dispatchers.filter((one) => one.silent_ms > SILENT_MS).length;
  const free = shards.filter((one) => one.dispatcher_id === null).length;
  const mailsWaitMs = mails.next_due_at === null ? 0 : now - Date.parse(mails.next_due_at);
  const isStopped = dispatchers.length === 0;
  return [
    isStopped && "No dispatcher is running: nothing is delivered until you start one.",
    silent > 0 &&
      `${counted(silent, "dispatcher")} sent no heartbeat; other dispatchers take over.`,
    ...[...new Set(dispatchers.flatMap(({ outage }) => outage ?? []))].map(outageText),
    !isStopped && free > 0 && `${counted(free, "shard")} of ${shards.length} without a dispatcher.`,
    quarantined > 0 &&
      `${counted(quarantined, "lane")} quarantined because of a problem in ReviewRelay.`,
    lag.lag_s > LATE_S && "Events that are due are waiting too long. Check the lag.",
    mailsWaitMs > MAILS_LATE_MS &&
      `${counted(mails.queued, "mail")} queued, the first due ${duration(mailsWaitMs / 1_000)} ago.`,
    blocked_heads.length > 0 &&
      `${counted(blocked_heads.length, "event")} failed and will be retried.`,
    disabled_subscriptions.length > 0 &&
      `${counted(disabled_subscriptions.length, "subscription")} disabled with held events.`,
  ].filter((one) => one !== false);
}

const OUTAGE_WORDS: Readonly<Record<string, string>> = {
  machine: "The machine has no free file descriptors, ports or memory",
  proxy: "The egress proxy is unreachable or rejects the dispatcher",
  policy: "The egress proxy or a firewall blocks connections to receivers",
  names: "The name servers do not respond",
  network: "No receiver is reachable over the network",
};

function outageText(part: string): string {
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
