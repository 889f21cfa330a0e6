// What a round leaves behind, as plain values: rows of the tables, what the receivers got, what the operators asked for
// and what was done to the processes. All instants are milliseconds since the epoch on the one clock of this machine.

export interface Subscription {
  readonly id: string;
  readonly partnerId: number;
  /** The address of its receiver, which no other subscription has. */
  readonly host: string;
  readonly kind: "immediate" | "batch";
  readonly ordering: "subscription" | "review";
  readonly state: "active" | "disabled" | "deleted";
  readonly failures: number;
  /** As it is now. */
  readonly filter: readonly string[] | null;
  readonly createdMs: number;
  /** Null once it is deleted. */
  readonly lastSequence: number | null;
}

export interface HistoryRow {
  readonly id: number;
  readonly eventId: string;
  readonly event: string;
  readonly partnerId: number;
  readonly inBatch: boolean;
  /** The reviewer's name, which the writers make unlike all others. */
  readonly marker: string | null;
  readonly recordedMs: number;
  readonly committedMs: number;
}

interface Entry {
  readonly subscriptionId: string;
  readonly sequence: number;
  readonly eventId: string;
  readonly isTest: boolean;
  readonly reviewId: number | null;
  readonly round: number;
}

export interface QueuedRow extends Entry {
  readonly attempt: number;
  readonly state: "pending" | "waiting";
}

export interface SettledRow extends Entry {
  readonly reason: "deleted" | "expired" | "skipped";
  readonly recordedMs: number;
  readonly settledMs: number;
}

export interface AttemptRow extends Entry {
  readonly id: string;
  readonly attempt: number;
  readonly outcome: "delivered" | "retry" | "failed" | "interrupted";
  readonly statusCode: number | null;
  readonly errorCode: string | null;
  readonly resent: boolean;
  /** Undefined where the table has no such column. */
  readonly possiblyRepeated: boolean | undefined;
  /** What the record says it was signed with; null where it does not know. */
  readonly signature: string | null;
  /** What the API shows as the body that was sent, null for none; undefined where that was not asked. */
  readonly body?: string | null | undefined;
  /** It ended its entry. */
  readonly ended: boolean;
  readonly committedMs: number;
}

export interface BatchEntry {
  readonly subscriptionId: string;
  readonly eventId: string;
}

/** A request as its receiver saw it. */
export interface Post {
  readonly atMs: number;
  readonly host: string;
  readonly eventId: string;
  readonly event: string;
  readonly attempt: number;
  readonly signature: string;
  readonly previousSignature: string | null;
  /** Undefined where the receiver hung up before it had read all. */
  readonly body: string | undefined;
  /** What was answered; null where nothing was. */
  status: number | null;
  /** When it was answered, or hung up on. */
  endedMs: number | null;
}

type OperationKind = "create" | "delete" | "rotate" | "enable" | "update" | "recover" | "test";

export interface Operation {
  readonly kind: OperationKind;
  readonly subscriptionId: string;
  readonly startedMs: number;
  readonly endedMs: number;
  /** Undefined: no answer, or one that does not say whether it was done. */
  readonly status: number | undefined;
  /** Of a create or an update. */
  readonly filter?: readonly string[] | null;
  /** Of a create or a rotation that was answered. */
  readonly secret?: string;
  readonly held?: "deliver" | "skip";
}

export interface AuditRow {
  readonly action: string;
  readonly subscriptionId: string;
  readonly held: string | null;
  readonly committedMs: number;
}

export interface Fault {
  readonly kind: string;
  readonly target: "dispatcher" | "api" | "postgres" | "redis" | "clock" | "lock" | "names";
  readonly startedMs: number;
  readonly endedMs: number;
}

/** A process that ended and that nobody had ended. */
export interface Exit {
  readonly name: string;
  readonly how: string;
  readonly atMs: number;
  readonly lastWords: readonly string[];
}

/** An answer that its request must not get, unless what was asked for had been deleted. */
export interface WrongAnswer {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly body: unknown;
  readonly sent: unknown;
  readonly endedMs: number;
}

/** An event of a provider whose request was answered 200. */
export interface Accepted {
  readonly eventId: string;
  /** The review that it is about, by `reviewKey`. */
  readonly review: string;
  /** Undefined where the history does not show it. */
  readonly marker: string | undefined;
}

export function reviewKey(siteId: number, externalId: string): string {
  return `${siteId} ${externalId}`;
}

export interface Facts {
  readonly retryDelaysMs: readonly number[];
  readonly subscriptions: readonly Subscription[];
  readonly history: readonly HistoryRow[];
  readonly queued: readonly QueuedRow[];
  readonly settled: readonly SettledRow[];
  readonly attempts: readonly AttemptRow[];
  readonly batchEntries: readonly BatchEntry[];
  readonly audit: readonly AuditRow[];
  readonly posts: readonly Post[];
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
  readonly exits: readonly Exit[];
  readonly wrongAnswers: readonly WrongAnswer[];
  readonly accepted: readonly Accepted[];
  /** The ids of the events that are remembered as taken. */
  readonly claims: ReadonlySet<string>;
  /** The reviews that there are, by `reviewKey`. */
  readonly reviews: ReadonlySet<string>;
  /** What the subscriptions were signed with at the end, where that could be asked for. */
  readonly finalSecrets: ReadonlyMap<string, string>;
}

/** One thing that must not be, and the rows that show it. */
export interface Finding {
  readonly rule: string;
  readonly what: string;
  readonly rows: readonly unknown[];
}

export type Rule = (facts: Facts) => Finding[];

/** Two clocks of one machine, and the rounding to milliseconds. */
export const CLOCKS_MS = 25;
/** For how long after a fault leases may still be lost, commits repeated and entries sent again. */
const AFTERMATH_MS = 8_000;
/** Settings may be a second old when a request begins; the rest is what a loaded machine takes. */
export const SETTINGS_MS = 5_000;
/** Entries of one lane that one crash may repeat: one under way and 16 that wait for their commit. */
export const REPEATS = 17;

/** The faults of a span after which a request can have been made again: those of dispatchers and of Postgres. */
export function crashesIn(
  { faults }: Pick<Facts, "faults">,
  { fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number },
): Fault[] {
  return faults.filter(
    ({ target, startedMs, endedMs }) =>
      (target === "dispatcher" || target === "postgres") &&
      startedMs <= untilMs + CLOCKS_MS &&
      endedMs + AFTERMATH_MS >= fromMs,
  );
}

const LEASE_MS = 4_000;

/** How often these can have taken a lane from its process: a store that is away for longer does so again and again. */
export function lossesOf(crashes: readonly Fault[]): number {
  return crashes.reduce((sum, { target, startedMs, endedMs }) => {
    const times = target === "postgres" ? 1 + Math.floor((endedMs - startedMs) / LEASE_MS) : 1;
    return sum + times;
  }, 0);
}

/** The sender cannot have known of an end earlier; that of a request without an answer the receiver sees too late. */
export function endOf({ atMs, endedMs, status }: Post): number {
  return status === null ? atMs : (endedMs ?? atMs);
}

export function laneOf(
  { ordering }: Pick<Subscription, "ordering">,
  entry: Pick<Entry, "isTest" | "sequence" | "reviewId">,
): string {
  if (entry.isTest) return `test ${entry.sequence}`;
  return ordering === "review" ? `review ${entry.reviewId}` : "main";
}

export function groupBy<T>(rows: readonly T[], keyOf: (row: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return groups;
}
