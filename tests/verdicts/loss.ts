import {
  CLOCKS_MS,
  type Facts,
  type Finding,
  type HistoryRow,
  type Operation,
  type Rule,
  type Subscription,
} from "./facts.ts";

/**
 * Each event whose request was answered 200 has everything that its transaction writes: its claim, review and action.
 */
export const acceptedIsRecorded: Rule<"accepted" | "history" | "claims" | "reviews"> = ({
  accepted,
  history,
  claims,
  reviews,
}) => {
  const markers = new Set(history.map(({ marker }) => marker));
  return accepted.flatMap((one) => {
    const missing = [
      ...(claims.has(one.eventId) ? [] : ["claim"]),
      ...(reviews.has(one.review) ? [] : ["review"]),
      ...(one.marker === undefined || markers.has(one.marker) ? [] : ["row in the history"]),
    ];
    if (missing.length === 0) return [];
    const what = `${one.marker ?? one.eventId} was answered 200 and has no ${missing.join(", no ")}`;
    return [{ rule: "accepted is recorded", what, rows: [one] }];
  });
};

interface PossibleFilter {
  readonly filter: readonly string[] | null;
  readonly fromMs: number;
  untilMs: number;
}

/**
 * Returns the filters that a subscription may have had; an update without an answer may have taken effect until the
 * end.
 */
function filtersOf(one: Subscription, operations: readonly Operation[]): PossibleFilter[] {
  // Its creation got no answer, so nobody could change it.
  if (!operations.some(({ kind }) => kind === "create"))
    return [{ filter: one.filter, fromMs: 0, untilMs: Number.POSITIVE_INFINITY }];
  const possible: (PossibleFilter & { readonly sure: boolean })[] = [];
  for (const { filter, startedMs, endedMs, status } of operations) {
    if (filter === undefined || (status !== undefined && status >= 300)) continue;
    const sure = status !== undefined;
    if (sure)
      for (const before of possible)
        if (before.sure) before.untilMs = Math.min(before.untilMs, endedMs);
    possible.push({ filter, fromMs: startedMs, untilMs: Number.POSITIVE_INFINITY, sure });
  }
  return possible;
}

type Verdict = "wanted" | "unwanted" | "either";

function isWanted(row: HistoryRow, one: Subscription, facts: OfSubscription): Verdict {
  if (row.committedMs < one.createdMs) return "unwanted";
  const deleted = facts.operations.find(
    ({ kind, status }) => kind === "delete" && (status === undefined || status < 300),
  );
  if (row.recordedMs <= facts.existsFromMs) return "either";
  if (deleted !== undefined && row.committedMs >= deleted.startedMs) return "either";
  if (one.kind === "batch") return row.inBatch ? "wanted" : "unwanted";
  const answers = facts.filters
    .filter(({ fromMs, untilMs }) => fromMs <= row.committedMs && untilMs >= row.recordedMs)
    .map(({ filter }) => filter === null || filter.includes(row.event));
  if (answers.every(Boolean)) return "wanted";
  return answers.some(Boolean) ? "either" : "unwanted";
}

interface OfSubscription {
  readonly operations: readonly Operation[];
  readonly filters: readonly PossibleFilter[];
  /**
   * When the creation was both committed and answered. A transaction that began earlier may not have seen the
   * subscription: a commit timestamp is taken before the commit is visible to others.
   */
  readonly existsFromMs: number;
}

/** Every wanted event is delivered, failed, skipped or still queued, and no other event is. */
export const wantedIsQueued: Rule<
  "subscriptions" | "history" | "operations" | "audit" | QueuedPart
> = (facts) =>
  facts.subscriptions.flatMap((one) => {
    const operations = facts.operations.filter(({ subscriptionId }) => subscriptionId === one.id);
    const created = facts.audit.find(
      ({ subscriptionId, action }) => subscriptionId === one.id && action === "WEBHOOK_CREATED",
    );
    const answer = operations.find(({ kind, status }) => kind === "create" && status === 201);
    const existsFromMs = Math.max(
      created?.committedMs ?? Number.POSITIVE_INFINITY,
      answer?.endedMs ?? 0,
    );
    const of = { operations, filters: filtersOf(one, operations), existsFromMs };
    const queued = queuedEvents(facts, one.id);
    const skips = facts.audit.filter(
      ({ subscriptionId, held }) => subscriptionId === one.id && held === "skip",
    );
    return facts.history
      .filter(({ partnerId }) => partnerId === one.partnerId)
      .flatMap((row) => {
        const verdict = isWanted(row, one, of);
        const isQueued = queued.has(row.eventId);
        // Enabling without the held entries drops the entries of the next batch, and so does a delete.
        const isDropped =
          one.kind === "batch" &&
          (one.state === "deleted" || skips.some((skip) => skip.committedMs >= row.recordedMs));
        if (verdict === "wanted" && !isQueued && !isDropped)
          return [finding("nothing lost", `${row.eventId} never came to ${one.id}`, [one, row])];
        if (verdict === "unwanted" && isQueued && !isRecovered(row, operations))
          return [finding("only what is wanted", `${row.eventId} came to ${one.id}`, [one, row])];
        return [];
      });
  });

/** A recovery uses the filter at its own time, not at the time of the event. */
function isRecovered(row: HistoryRow, operations: readonly Operation[]): boolean {
  return operations.some(
    ({ kind, endedMs, status }) =>
      kind === "recover" && (status === undefined || (status < 300 && endedMs >= row.recordedMs)),
  );
}

type QueuedPart = "queued" | "settled" | "attempts" | "batchEntries";

function queuedEvents(facts: Pick<Facts, QueuedPart>, id: string): Set<string> {
  const rows = [...facts.queued, ...facts.settled, ...facts.attempts, ...facts.batchEntries];
  return new Set(
    rows.flatMap(({ subscriptionId, eventId }) => (subscriptionId === id ? [eventId] : [])),
  );
}

/** Each number of a sequence is in exactly one state: queued, skipped or ended by an attempt. */
export const sequenceHasNoGap: Rule<"subscriptions" | "queued" | "settled" | "attempts"> = (
  facts,
) =>
  facts.subscriptions.flatMap((one) => {
    const places = new Map<number, string[]>();
    const put = (subscriptionId: string, sequence: number, place: string) => {
      if (subscriptionId === one.id) places.set(sequence, [...(places.get(sequence) ?? []), place]);
    };
    for (const row of facts.queued) put(row.subscriptionId, row.sequence, "queued");
    for (const row of facts.settled) put(row.subscriptionId, row.sequence, row.reason);
    for (const row of facts.attempts)
      if (row.ended) put(row.subscriptionId, row.sequence, row.outcome);
    const last = one.lastSequence ?? Math.max(0, ...places.keys());
    const wrong = Array.from({ length: last }, (_, n) => n + 1).filter(
      (sequence) => places.get(sequence)?.length !== 1,
    );
    const beyond = [...places.keys()].filter((sequence) => sequence > last);
    return [...wrong, ...beyond].map((sequence) =>
      finding(
        "sequence without a gap",
        `${one.id}#${sequence} of ${last} is ${places.get(sequence)?.join(" and ") ?? "nowhere"}`,
        facts.attempts.filter((row) => row.subscriptionId === one.id && row.sequence === sequence),
      ),
    );
  });

/** Every skipped entry was queued before an operation that skips had ended. */
export const skipsAreAskedFor: Rule<"settled" | "operations"> = (facts) =>
  facts.settled
    .filter((row) => {
      const kind = row.reason === "deleted" ? "delete" : "enable";
      return !facts.operations.some(
        (operation) =>
          operation.subscriptionId === row.subscriptionId &&
          operation.kind === kind &&
          (kind === "delete" || operation.held === "skip") &&
          operation.startedMs <= row.settledMs + CLOCKS_MS &&
          (operation.status === undefined || row.recordedMs <= operation.endedMs),
      );
    })
    .map((row) =>
      finding("skips are asked for", `${row.subscriptionId}#${row.sequence} is ${row.reason}`, [
        row,
      ]),
    );

/** Nothing is left to do for active subscriptions at the end. */
export const allIsDrained: Rule<"subscriptions" | "queued" | "batchEntries"> = ({
  subscriptions,
  queued,
  batchEntries,
}) =>
  subscriptions
    .filter(({ state }) => state === "active")
    .flatMap((one) => {
      const left = [...queued, ...batchEntries].filter((row) => row.subscriptionId === one.id);
      return left.length === 0
        ? []
        : [
            finding(
              "all is drained",
              `${left.length} entries of ${one.id} are left`,
              left.slice(0, 5),
            ),
          ];
    });

function finding(rule: string, what: string, rows: readonly unknown[]): Finding {
  return { rule, what, rows };
}
