import { createHmac } from "node:crypto";

import type {
  Accepted,
  AttemptRow,
  Facts,
  Fault,
  HistoryRow,
  Post,
  QueuedRow,
  SettledRow,
  Subscription,
  WrongAnswer,
} from "../../verdicts/facts.ts";

const SECRET = "secret";
export const SUBSCRIPTION = "S";
const HOST = "127.2.0.1";

export function sign(body: string, secret = SECRET): string {
  return `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}

/** The times of the valid facts: one entry per second, each answered 10 ms after its arrival. */
export const at = (sequence: number): number => 10_000 + sequence * 1_000;

export const subscription: Subscription = {
  id: SUBSCRIPTION,
  partnerId: 1,
  host: HOST,
  kind: "immediate",
  ordering: "subscription",
  sequenceHeaders: true,
  state: "active",
  failures: 0,
  filter: null,
  createdMs: 1_000,
  lastSequence: 3,
};

export function history(sequence: number, changes: Partial<HistoryRow> = {}): HistoryRow {
  return {
    id: sequence,
    eventId: `E${sequence}`,
    event: "review_received",
    partnerId: 1,
    inBatch: true,
    marker: `m${sequence}`,
    recordedMs: at(sequence) - 20,
    committedMs: at(sequence) - 10,
    ...changes,
  };
}

/** Lists the first events of the log. */
export const logged = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ subscriptionId: SUBSCRIPTION, eventId: `E${n + 1}` }));

export function post(sequence: number, changes: Partial<Post> = {}): Post {
  const { attempt = 1, atMs = at(sequence), status = 200 } = changes;
  const body = changes.body ?? `body of E${sequence}/${attempt} at ${atMs}`;
  return {
    atMs,
    host: HOST,
    eventId: `E${sequence}`,
    event: "review_received",
    attempt,
    signature: sign(body),
    previousSignature: null,
    place: { sequence, settled: sequence - 1 },
    body,
    status,
    endedMs: atMs + 10,
    ...changes,
  };
}

/** Builds the record of a request. */
export function record(sequence: number, of: Post, changes: Partial<AttemptRow> = {}): AttemptRow {
  return {
    id: `A${sequence}-${of.attempt}-${of.atMs}`,
    subscriptionId: SUBSCRIPTION,
    sequence,
    eventId: of.eventId,
    isTest: false,
    reviewId: 1,
    round: 1,
    attempt: of.attempt,
    outcome: "delivered",
    statusCode: of.status,
    errorCode: null,
    resent: false,
    possiblyRepeated: undefined,
    signature: of.signature,
    body: of.body,
    ended: true,
    committedMs: of.atMs + 20,
    ...changes,
  };
}

export function queued(sequence: number): QueuedRow {
  const entry = { subscriptionId: SUBSCRIPTION, sequence, eventId: `E${sequence}` };
  return { ...entry, isTest: false, reviewId: 1, round: 1, attempt: 1, state: "pending" };
}

export function settled(sequence: number, reason: SettledRow["reason"]): SettledRow {
  const entry = { subscriptionId: SUBSCRIPTION, sequence, eventId: `E${sequence}`, reason };
  const times = { recordedMs: at(sequence) - 20, settledMs: at(sequence) + 500 };
  return { ...entry, ...times, isTest: false, reviewId: 1, round: 1 };
}

/** Builds an accepted event about the review R1. */
export function accepted(sequence: number, changes: Partial<Accepted> = {}): Accepted {
  return { eventId: `P${sequence}`, review: "1 R1", marker: `m${sequence}`, ...changes };
}

export function wrongAnswer(changes: Partial<WrongAnswer> = {}): WrongAnswer {
  const path = `/partner/webhooks/${SUBSCRIPTION}`;
  return {
    method: "GET",
    path,
    status: 404,
    body: {},
    sent: undefined,
    endedMs: at(2),
    ...changes,
  };
}

export function crash(startedMs: number, changes: Partial<Fault> = {}): Fault {
  return { kind: "kill -9", target: "dispatcher", startedMs, endedMs: startedMs, ...changes };
}

export const POSTS = [post(1), post(2), post(3)] as const;
export const RECORDS = POSTS.map((one, n) => record(n + 1, one));

/** Builds the facts of three events of one subscription, delivered one after the other. */
export function facts(changes: Partial<Facts> = {}): Facts {
  return {
    retryDelaysMs: [200, 400, 800],
    subscriptions: [subscription],
    history: [history(1), history(2), history(3)],
    logged: logged(3),
    queued: [],
    settled: [],
    attempts: RECORDS,
    batchEntries: [],
    audit: [
      { action: "WEBHOOK_CREATED", subscriptionId: SUBSCRIPTION, held: null, committedMs: 1_010 },
    ],
    posts: POSTS,
    operations: [
      {
        kind: "create",
        subscriptionId: SUBSCRIPTION,
        startedMs: 990,
        endedMs: 1_020,
        status: 201,
        filter: null,
        secret: SECRET,
      },
    ],
    faults: [],
    exits: [],
    wrongAnswers: [],
    accepted: [accepted(1), accepted(2), accepted(3)],
    claims: new Set(["P1", "P2", "P3"]),
    reviews: new Set(["1 R1"]),
    finalSecrets: new Map([[SUBSCRIPTION, SECRET]]),
    ...changes,
  };
}
