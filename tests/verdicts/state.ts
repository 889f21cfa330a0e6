import {
  type AttemptRow,
  type AuditRow,
  CLOCKS_MS,
  crashesIn,
  type Facts,
  type Finding,
  type Operation,
  type Post,
  type Rule,
  SETTINGS_MS,
  type Subscription,
} from "./facts.ts";
import { shown } from "./attempts.ts";
import { DISABLED_AT, failuresAfter } from "./outcome.ts";

interface State {
  readonly state: "active" | "disabled" | "deleted";
  readonly failures: number;
}

interface Span {
  readonly fromMs: number;
  untilMs: number;
}

type Change =
  /** The records of one commit that ended their entries, in the order of their ids. */
  | { readonly kind: "attempts"; readonly rows: readonly AttemptRow[]; readonly atMs: number }
  | { readonly kind: "audit"; readonly row: AuditRow; readonly atMs: number };

type ReplayedPart = "attempts" | "audit" | "operations";

/**
 * Returns the possible states of a subscription after all its records in commit order. Enabling an active
 * subscription resets the counter without a record, so both states are possible while one is requested.
 */
function replay(
  one: Subscription,
  facts: Pick<Facts, ReplayedPart>,
): { readonly possible: readonly State[]; readonly disabled: readonly Span[] } {
  const ended = facts.attempts.filter((row) => row.ended && row.subscriptionId === one.id);
  const changes: Change[] = [
    ...facts.audit
      .filter((row) => row.subscriptionId === one.id)
      .map((row) => ({ kind: "audit" as const, row, atMs: row.committedMs })),
    ...[...Map.groupBy(ended, ({ committedMs }) => committedMs)].map(([atMs, rows]) => ({
      kind: "attempts" as const,
      rows: rows.toSorted((a, b) => a.id.localeCompare(b.id)),
      atMs,
    })),
  ].toSorted((a, b) => a.atMs - b.atMs);
  const enables = facts.operations.filter(
    ({ subscriptionId, kind }) => subscriptionId === one.id && kind === "enable",
  );
  const disabled: Span[] = [];
  let possible: State[] = [{ state: "active", failures: 0 }];
  let fromMs = 0;
  for (const change of changes) {
    const next = withReset(possible, enables, { fromMs, untilMs: change.atMs }).flatMap((state) =>
      after(state, change),
    );
    fromMs = change.atMs;
    const [wasDown, isDown] = [possible, next].map((all) =>
      all.every(({ state }) => state === "disabled"),
    );
    if (isDown && !wasDown)
      disabled.push({ fromMs: change.atMs, untilMs: Number.POSITIVE_INFINITY });
    const open = disabled.at(-1);
    if (wasDown && !isDown && open !== undefined) open.untilMs = change.atMs;
    possible = distinct(next);
  }
  return {
    possible: distinct(withReset(possible, enables, { fromMs, untilMs: Number.POSITIVE_INFINITY })),
    disabled,
  };
}

type Outcome = AttemptRow["outcome"];

/**
 * Returns the orders in which one commit may have counted its records: the answers came in the order of the ids if all entries
 * are of one lane. Lanes send beside each other, and ids are from the beginning of a POST, so that any number of failures may
 * have come after the last success of several lanes.
 */
function ordersOf(rows: readonly AttemptRow[]): readonly (readonly Outcome[])[] {
  const isOneLane = rows.every(({ sequence }, i) => sequence > (rows[i - 1]?.sequence ?? 0));
  const outcomes = rows.map(({ outcome }) => outcome);
  const failed = outcomes.filter((outcome) => outcome !== "delivered");
  if (isOneLane || failed.length === outcomes.length) return [outcomes];
  return [...failed, undefined].map((_, later) => [
    ...failed.slice(later),
    "delivered",
    ...failed.slice(0, later),
  ]);
}

function withReset(
  possible: readonly State[],
  enables: readonly Operation[],
  { fromMs, untilMs }: Span,
): readonly State[] {
  const isAsked = enables.some(
    ({ startedMs, endedMs, status }) =>
      startedMs <= untilMs && (status === undefined || endedMs + CLOCKS_MS >= fromMs),
  );
  const active = possible.some(({ state }) => state === "active");
  return isAsked && active ? [...possible, { state: "active", failures: 0 }] : possible;
}

function after(state: State, change: Change): readonly State[] {
  if (change.kind === "attempts")
    return ordersOf(change.rows).map((outcomes) => outcomes.reduce(afterOutcome, state));
  const { action } = change.row;
  if (action === "WEBHOOK_ENABLED") return [{ state: "active", failures: 0 }];
  if (action === "WEBHOOK_DELETED") return [{ ...state, state: "deleted" }];
  const isDisabled = action === "WEBHOOK_DISABLED" && state.state === "active";
  return [isDisabled ? { ...state, state: "disabled" } : state];
}

function afterOutcome(state: State, outcome: Outcome): State {
  if (state.state !== "active") return state;
  const failures = failuresAfter(state.failures, outcome === "delivered" ? outcome : "failed");
  return failures >= DISABLED_AT ? { state: "disabled", failures } : { state: "active", failures };
}

function distinct(states: readonly State[]): State[] {
  return [...new Map(states.map((one) => [`${one.state} ${one.failures}`, one])).values()];
}

/** State and failure counter follow from the records in commit order. */
export const countersFollowRecords: Rule<"subscriptions" | ReplayedPart> = (facts) =>
  facts.subscriptions.flatMap((one) => {
    const { possible } = replay(one, facts);
    if (possible.some(({ state, failures }) => state === one.state && failures === one.failures))
      return [];
    const told = possible.map(({ state, failures }) => `${state} with ${failures}`).join(" or ");
    const what = `${one.id} is ${one.state} with ${one.failures} failures; its records say ${told}`;
    return [{ rule: "counters follow the records", what, rows: [one] }];
  });

/** No request starts after a confirmed delete or while a subscription is disabled; only requests in progress end. */
export const onlyToTheActive: Rule<"subscriptions" | "posts" | "faults" | ReplayedPart> = (facts) =>
  facts.subscriptions.flatMap((one) => {
    const deleted = facts.operations.find(
      ({ subscriptionId, kind, status }) =>
        subscriptionId === one.id && kind === "delete" && status !== undefined && status < 300,
    );
    const enables = facts.operations.filter(
      ({ subscriptionId, kind }) => subscriptionId === one.id && kind === "enable",
    );
    const spans: Span[] = replay(one, facts).disabled.map(({ fromMs, untilMs }) => {
      // The commit precedes its answer and may be as early as its request.
      const begun = enables.findLast(({ startedMs }) => startedMs <= untilMs)?.startedMs;
      return { fromMs, untilMs: untilMs < Number.POSITIVE_INFINITY ? (begun ?? untilMs) : untilMs };
    });
    if (deleted !== undefined)
      spans.push({ fromMs: deleted.endedMs, untilMs: Number.POSITIVE_INFINITY });
    return facts.posts
      .filter(({ host }) => host === one.host)
      .flatMap((post) => spans.flatMap((span) => lateFor(facts, post, { one, span })));
  });

function lateFor(
  facts: Pick<Facts, "faults">,
  post: Post,
  { one, span }: { readonly one: Subscription; readonly span: Span },
): Finding[] {
  const { fromMs, untilMs } = span;
  if (post.atMs <= fromMs + SETTINGS_MS || post.atMs >= untilMs) return [];
  if (crashesIn(facts, { fromMs, untilMs: post.atMs }).length > 0) return [];
  const what = `${one.id} got ${post.eventId} ${Math.round(post.atMs - fromMs)} ms after it was disabled or deleted`;
  return [{ rule: "only to the active", what, rows: [one, shown(post)] }];
}

/** The message of a process that ends because a store was down for too long. */
const GIVES_UP = "cannot be reached";

/** No process ends unexpectedly, except one that reports that a store could not be reached for long. */
export const processesLive: Rule<"exits"> = ({ exits }) =>
  exits
    .filter(({ lastWords }) => !lastWords.some((line) => line.includes(GIVES_UP)))
    .map((exit) => ({
      rule: "processes live",
      what: `${exit.name} ended by itself with ${exit.how}`,
      rows: [exit],
    }));
