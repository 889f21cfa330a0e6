// The facts of a round as plain values: rows of the tables, the receivers' requests, the operators' operations and
// the injected faults. All instants are milliseconds since the epoch on this machine's clock.
import type { Place } from "../../src/sdk/typescript/src/index.ts";

export interface Subscription {
  readonly id: string;
  readonly partnerId: number;
  /** The host and port of its receiver, which no other subscription has. */
  readonly host: string;
  readonly kind: "immediate" | "batch";
  readonly ordering: "subscription" | "review";
  readonly sequenceHeaders: boolean;
  readonly state: "active" | "disabled" | "deleted";
  readonly failures: number;
  /** The filter at the end of the round. */
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
  /** The reviewer's name, which is unique for each report. */
  readonly marker: string | null;
  readonly recordedMs: number;
  readonly committedMs: number;
}

/** An event in the log of a subscription. */
export interface LoggedRow {
  readonly subscriptionId: string;
  readonly eventId: string;
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
  /** Undefined if the table has no such column. */
  readonly possiblyRepeated: boolean | undefined;
  /** The signature that the record shows; null if it has none. */
  readonly signature: string | null;
  /** The sent body that the API shows, null if it shows none; undefined if it was not read. */
  readonly body?: string | null | undefined;
  /** Whether this attempt was the last one of its entry. */
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
  /** The values of the sequence headers; null without them. */
  readonly place: Place | null;
  /** Undefined if the receiver closed the connection before it had read everything. */
  readonly body: string | undefined;
  /** The answered status; null without an answer. */
  status: number | null;
  /** When the receiver answered or closed the connection. */
  endedMs: number | null;
}

type OperationKind =
  | "create"
  | "delete"
  | "rotate"
  | "disable"
  | "enable"
  | "update"
  | "recover"
  | "redeliver"
  | "test";

export interface Operation {
  readonly kind: OperationKind;
  readonly subscriptionId: string;
  readonly startedMs: number;
  readonly endedMs: number;
  /** Undefined without an answer, or if the answer does not tell whether the operation was carried out. */
  readonly status: number | undefined;
  /** Present for a create or an update. */
  readonly filter?: readonly string[] | null;
  /** Present for a create or a rotation that was answered. */
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

/** A process that ended without a fault or a stop. */
export interface Exit {
  readonly name: string;
  readonly how: string;
  readonly atMs: number;
  readonly lastWords: readonly string[];
}

/** An answer that is not allowed for its request, unless the requested object had been deleted. */
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
  /** The `reviewKey` of its review. */
  readonly review: string;
  /** Undefined if the event is not shown in the history. */
  readonly marker: string | undefined;
}

export function reviewKey(siteId: number, externalId: string): string {
  return `${siteId} ${externalId}`;
}

export interface Facts {
  readonly retryDelaysMs: readonly number[];
  readonly subscriptions: readonly Subscription[];
  readonly history: readonly HistoryRow[];
  /** The events of each log in the order of their sequence. */
  readonly logged: readonly LoggedRow[];
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
  /** The event ids that are stored as claimed. */
  readonly claims: ReadonlySet<string>;
  /** The existing reviews, as `reviewKey`. */
  readonly reviews: ReadonlySet<string>;
  /** The signing secrets at the end; absent for subscriptions whose secret cannot be read. */
  readonly finalSecrets: ReadonlyMap<string, string>;
}

/** A violation of a rule, with the rows that prove it. */
export interface Finding {
  readonly rule: string;
  readonly what: string;
  readonly rows: readonly unknown[];
}

/** A rule, with the parts of the facts that it needs. */
export type Rule<Part extends keyof Facts> = (facts: Pick<Facts, Part>) => Finding[];

/** The tolerance between two clocks of one machine, including rounding to milliseconds. */
export const CLOCKS_MS = 25;
/** How long after a fault leases may still be lost, commits repeated and entries sent again. */
const AFTERMATH_MS = 8_000;
/** Settings may be a second old when a request begins; the rest is for a loaded machine. */
export const SETTINGS_MS = 5_000;
/** How many entries of one lane one crash may repeat: one in progress and 16 that wait for their commit. */
export const REPEATS = 17;

/** Returns the faults of dispatchers and Postgres after which a request in this span may have been repeated. */
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

/** Counts how often these faults can have taken a lane from its process; a long outage does so repeatedly. */
export function lossesOf(crashes: readonly Fault[]): number {
  return crashes.reduce((sum, { target, startedMs, endedMs }) => {
    const times = target === "postgres" ? 1 + Math.floor((endedMs - startedMs) / LEASE_MS) : 1;
    return sum + times;
  }, 0);
}

/**
 * Returns the earliest time at which the sender can know that a request ended; without an answer the receiver notices
 * the end too late, so the start counts.
 */
export function endOf({ atMs, endedMs, status }: Post): number {
  return status === null ? atMs : (endedMs ?? atMs);
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
