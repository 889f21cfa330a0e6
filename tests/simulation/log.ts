import type { AttemptRecord } from "../../dispatcher/store/attempt-queries.ts";
import type { End, OutboxRow, QueuedRow, SettledRow, SubscriptionRow } from "./tables.ts";

/*
 * The log of a subscription with its offset and the rows of `outbox`, by the rules of db/log.ts and of the statements
 * in dispatcher/store. Each rule is a separate function, so that an injected fault can replace it.
 */

type Kind = "logged" | "row";

/** Adds committed entries; a transaction may commit after one that drew later sequences. */
export function append(target: SubscriptionRow, kind: Kind, rows: readonly OutboxRow[]): void {
  const { sequencesOf } = target;
  const into = kind === "logged" ? target.log : target.outbox;
  for (const row of rows) {
    insert(into, row);
    if (kind === "logged") target.lastLogged = Math.max(target.lastLogged, row.sequence);
    const known = sequencesOf.get(row.eventId);
    if (known === undefined) sequencesOf.set(row.eventId, [row.sequence]);
    else known.push(row.sequence);
  }
}

function insert(into: OutboxRow[], row: OutboxRow): void {
  into.splice(indexFrom(into, row.sequence), 0, row);
}

/** Returns the index of the first entry with this sequence or a later one. */
export function indexFrom(rows: readonly OutboxRow[], sequence: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle]?.sequence ?? 0) < sequence) low = middle + 1;
    else high = middle;
  }
  return low;
}

function find(rows: readonly OutboxRow[], sequence: number): OutboxRow | undefined {
  const row = rows[indexFrom(rows, sequence)];
  return row?.sequence === sequence ? row : undefined;
}

/** Returns the deliverable entries from a sequence on, in order, like the view queued_entries. */
export function* queueOf(target: SubscriptionRow, from = 0): Generator<OutboxRow, void> {
  const { outbox, log, settledThrough, skippedThrough } = target;
  let at = indexFrom(outbox, Math.max(from, skippedThrough + 1));
  let next = indexFrom(log, Math.max(from, settledThrough + 1));
  for (;;) {
    const [row, event] = [outbox[at], log[next]];
    const isRow = row !== undefined && (event === undefined || row.sequence <= event.sequence);
    const first = isRow ? row : event;
    if (first === undefined) return;
    if (isRow) at += 1;
    else next += 1;
    yield first;
  }
}

/** Returns the entry of this sequence, if it is deliverable. */
export function entryOf(target: SubscriptionRow, sequence: number): OutboxRow | undefined {
  const { outbox, log, settledThrough, skippedThrough } = target;
  if (sequence <= skippedThrough) return undefined;
  return find(outbox, sequence) ?? (sequence > settledThrough ? find(log, sequence) : undefined);
}

export function isQueueEmpty(target: SubscriptionRow): boolean {
  return queueOf(target).next().done === true;
}

/** Returns the sequence after which a load reads the log. */
export function logBegin({ settledThrough }: SubscriptionRow, after: number): number {
  return Math.max(after, settledThrough) + 1;
}

export interface Wanted {
  readonly after: number;
  readonly limit: number;
  readonly maxBytes: number;
  readonly exceptReviews: readonly (number | null)[];
}

export interface Found {
  readonly entries: QueuedRow[];
  /** The left-out reviews fill the window of the log. */
  readonly isFull: boolean;
  /** The load walks past rows that `postponeBehind` would leave out. */
  readonly isBehind: boolean;
  /** The first due time after now, with lanes by review. */
  readonly nextDueMs: number | null;
  /** The number of rows and events that were read. */
  readonly walked: number;
}

/**
 * Returns the entries of one load, without tests: rows of `outbox`, and log events within its window. With lanes by review
 * it leaves out reviews that wait for a retry at `nowMs`; of those that waited it has the first row.
 */
export function readQueue(
  target: SubscriptionRow,
  wanted: Wanted,
  { window, nowMs }: { readonly window: number; readonly nowMs: number },
): Found {
  return target.ordering === "review"
    ? readByReview(target, wanted, { window, nowMs })
    : readInOrder(target, wanted);
}

function readInOrder(target: SubscriptionRow, wanted: Wanted): Found {
  const { outbox, log, skippedThrough } = target;
  const isAsked = (row: OutboxRow) => !row.isTest;
  const firstRow = indexFrom(outbox, Math.max(wanted.after, skippedThrough) + 1);
  const rows = upTo(wanted, outbox.slice(firstRow).filter(isAsked)).map(asRow);
  const first = indexFrom(log, logBegin(target, wanted.after));
  const events = upTo(wanted, log.slice(first, first + wanted.limit)).map(asEvent);
  const entries = upTo(wanted, [...rows, ...events].toSorted(bySequence));
  const walked = rows.length + events.length;
  return { entries, isFull: false, isBehind: false, nextDueMs: null, walked };
}

function readByReview(
  target: SubscriptionRow,
  wanted: Wanted,
  { window, nowMs }: { readonly window: number; readonly nowMs: number },
): Found {
  const { outbox, log, settledThrough, skippedThrough, lastLogged } = target;
  const isAsked = ({ reviewId }: OutboxRow) => !wanted.exceptReviews.includes(reviewId);
  const queued = outbox
    .slice(indexFrom(outbox, skippedThrough + 1))
    .filter(({ isTest }) => !isTest);
  const heads = new Map<number | null, OutboxRow>();
  const waits = new Map<number | null, OutboxRow>();
  const due: QueuedRow[] = [];
  const rows: QueuedRow[] = [];
  for (const row of queued) {
    const isHead = !heads.has(row.reviewId);
    heads.getOrInsert(row.reviewId, row);
    const atMs = lookAtMs(row);
    if (atMs !== null && isHead && atMs <= nowMs && isAsked(row))
      due.push({ ...asRow(row), isFirstOnly: true });
    if (atMs === null && !isBehind(waits, row) && isAsked(row)) rows.push(asRow(row));
    if (atMs !== null) waits.getOrInsert(row.reviewId, row);
  }
  const first = indexFrom(log, logBegin(target, wanted.after));
  const looked = wanted.limit > 0 ? log.slice(first, first + window) : [];
  const free = looked.filter((event) => isAsked(event) && !isBehind(waits, event));
  const events = upTo(wanted, free).map(asEvent);
  const isCut = !isFilled(wanted, events) && lastLogged - settledThrough > window;
  const end = isCut ? Math.max(settledThrough, events.at(-1)?.sequence ?? 0) : undefined;
  const others = upTo(
    wanted,
    withinWindow([...upTo(wanted, rows), ...events], end).toSorted(bySequence),
  );
  const dueFirst = due.toSorted(
    (a, b) => (lookAtMs(a) ?? 0) - (lookAtMs(b) ?? 0) || bySequence(a, b),
  );
  const later = queued.map((row) => lookAtMs(row) ?? 0).filter((atMs) => atMs > nowMs);
  return {
    entries: upTo(wanted, inTurns(withinWindow(dueFirst, end), others)),
    isFull: wanted.limit > 0 && isCut && !isFilled(wanted, others),
    isBehind: wanted.limit > 0 && walkedPast(target, queued, nowMs).next().done !== true,
    nextDueMs: later.length > 0 ? Math.min(...later) : null,
    walked: due.length + rows.length + looked.length,
  };
}

const bySequence = (a: OutboxRow, b: OutboxRow) => a.sequence - b.sequence;
const asRow = (row: OutboxRow): QueuedRow => ({ ...row, isLogged: false });
const asEvent = (event: OutboxRow): QueuedRow => ({ ...event, isLogged: true });

/** The time before which loads by review do not look at a row; null if it never waited. */
function lookAtMs({ dueAtMs, behindUntilMs }: OutboxRow): number | null {
  return dueAtMs ?? behindUntilMs ?? null;
}

/** Yields rows that loads by review walk past, each with the time of the first row of its review. */
function* walkedPast(
  { settledThrough }: SubscriptionRow,
  queued: readonly OutboxRow[],
  nowMs: number,
): Generator<[OutboxRow, number]> {
  const heads = new Map<number | null, OutboxRow>();
  for (const row of queued) {
    const untilMs = lookAtMs(heads.getOrInsert(row.reviewId, row));
    if (row.dueAtMs !== null || untilMs === null || (row.behindUntilMs ?? 0) > nowMs) continue;
    if (
      mayPostpone(settledThrough, row) &&
      untilMs > (row.behindUntilMs ?? Number.NEGATIVE_INFINITY)
    )
      yield [row, untilMs];
  }
}

/** Whether no event of the log precedes a row. */
export function mayPostpone(settledThrough: number, { sequence }: OutboxRow): boolean {
  return sequence <= settledThrough;
}

/** Simulates `postponeBehind`. */
export function postponeBehind(target: SubscriptionRow, nowMs: number): void {
  const { outbox, skippedThrough } = target;
  const queued = outbox
    .slice(indexFrom(outbox, skippedThrough + 1))
    .filter(({ isTest }) => !isTest);
  for (const [row, untilMs] of walkedPast(target, queued, nowMs)) row.behindUntilMs = untilMs;
}

/** Whether an entry of the same review that waits for a retry precedes this one. */
function isBehind(
  waits: ReadonlyMap<number | null, OutboxRow>,
  { reviewId }: Pick<OutboxRow, "reviewId">,
): boolean {
  return waits.has(reviewId);
}

function inTurns<T>(one: readonly T[], other: readonly T[]): T[] {
  const length = Math.max(one.length, other.length);
  return Array.from({ length }, (_, i) => [one[i], other[i]])
    .flat()
    .filter((item) => item !== undefined);
}

export function bytesOf({ history }: OutboxRow): number {
  return history?.bytes ?? 0;
}

/** Returns the first entries: up to `limit`, and up to the one that reaches `maxBytes`. */
function upTo<R extends OutboxRow>({ limit, maxBytes }: Wanted, rows: readonly R[]): R[] {
  const taken: R[] = [];
  let bytes = 0;
  for (const row of rows) {
    if (taken.length >= limit || bytes >= maxBytes) break;
    taken.push(row);
    bytes += bytesOf(row);
  }
  return taken;
}

function isFilled({ limit, maxBytes }: Wanted, rows: readonly OutboxRow[]): boolean {
  return rows.length >= limit || rows.reduce((sum, row) => sum + bytesOf(row), 0) >= maxBytes;
}

/** Removes rows after the end of the window, because log events of the same reviews may come before them. */
export function withinWindow(entries: readonly QueuedRow[], end: number | undefined): QueuedRow[] {
  return entries.filter(({ sequence }) => end === undefined || sequence <= end);
}

/** Simulates `passLogged`: gives rows to the next log events and moves the offset past them. */
export function passLogged(target: SubscriptionRow, limit: number): void {
  const { log, settledThrough } = target;
  const first = indexFrom(log, settledThrough + 1);
  const last = log[Math.min(first + limit, log.length) - 1];
  if (last === undefined || last.sequence <= settledThrough) return;
  passEvents(target, last.sequence);
  target.settledThrough = last.sequence;
}

/** Gives rows to the events after the offset, up to a sequence. */
export function passEvents(target: SubscriptionRow, through: number): void {
  const { log, settledThrough, outbox } = target;
  for (let at = indexFrom(log, settledThrough + 1); at < log.length; at++) {
    const event = log[at];
    if (event === undefined || event.sequence > through) return;
    insert(outbox, { ...event, attempt: 1 });
  }
}

/** The effect of a record on its entry; `ended` is the entry if it ends. */
export interface Move {
  readonly moves: boolean;
  readonly apply: () => OutboxRow | undefined;
}

/**
 * Returns the commit of one record: it moves the offset for a log event after it, and otherwise changes the row that is
 * at the attempt of the record. One by one, records have the same effect as in the statement for all.
 */
export function moveOf(
  target: SubscriptionRow,
  record: Pick<AttemptRecord, "sequence" | "isLogged" | "attempt" | "decision">,
  dueAtMs: number | null,
): Move {
  const { sequence, isLogged, attempt, decision } = record;
  const isEnd = decision.kind === "delivered" || decision.kind === "failed";
  if (isAhead(target, { sequence, isLogged })) {
    const event = find(target.log, sequence);
    const apply = () => {
      if (event === undefined || decision.kind === "interrupted") return undefined;
      passEvents(target, sequence - 1);
      target.settledThrough = sequence;
      if (decision.kind === "retry")
        writeRetry(target, { ...event, attempt: attempt + 1, dueAtMs });
      return isEnd ? event : undefined;
    };
    return { moves: event !== undefined, apply };
  }
  const late = decision.kind === "delivered" ? skippedEntry(target, sequence) : undefined;
  if (late !== undefined) return { moves: true, apply: () => unskip(target, late) };
  const row = sequence > target.skippedThrough ? find(target.outbox, sequence) : undefined;
  if (row === undefined || row.attempt !== attempt) return { moves: false, apply: () => undefined };
  const apply = () => {
    if (decision.kind === "retry") Object.assign(row, { attempt: attempt + 1, dueAtMs });
    if (!isEnd) return undefined;
    removeRow(target, row);
    return row;
  };
  return { moves: true, apply };
}

/** Returns an entry that a skip has settled, while its POST was under way. */
export function skippedEntry(target: SubscriptionRow, sequence: number): OutboxRow | undefined {
  const settled = target.settled.get(sequence);
  return settled?.state === "skipped" ? settled : undefined;
}

/** Takes an entry out of its skip, because it was delivered all the same. */
function unskip(target: SubscriptionRow, entry: OutboxRow): OutboxRow {
  const row = find(target.outbox, entry.sequence);
  if (row !== undefined) removeRow(target, row);
  return entry;
}

/** Whether the outcome of this entry moves the offset: no other record has, and the offset has not passed it. */
export function isAhead(
  { settledThrough }: SubscriptionRow,
  { sequence, isLogged }: Pick<AttemptRecord, "sequence" | "isLogged">,
): boolean {
  return isLogged && sequence > settledThrough;
}

export function writeRetry({ outbox }: SubscriptionRow, row: OutboxRow): void {
  insert(outbox, row);
}

function removeRow({ outbox }: SubscriptionRow, row: OutboxRow): void {
  outbox.splice(outbox.indexOf(row), 1);
}

export function noteEnd(target: SubscriptionRow, row: OutboxRow, end: End, settledMs: number) {
  const settled: SettledRow = { ...row, ...end, settledMs };
  target.settled.set(row.sequence, settled);
  return settled;
}

/** Simulates `skipQueued`: skips all queued entries at once. */
export function skipQueued(
  target: SubscriptionRow,
  reason: "deleted" | "skipped",
  settledMs: number,
): void {
  const skipped = [...queueOf(target)];
  moveBySkip(target, target.lastSequence);
  target.skippedThrough = Math.max(target.skippedThrough, target.lastSequence);
  for (const row of skipped) noteEnd(target, row, { state: "skipped", reason }, settledMs);
}

export function moveBySkip(target: SubscriptionRow, through: number): void {
  target.settledThrough = Math.max(target.settledThrough, through);
}

/** Describes an entry in a wrong place: each committed sequence must be queued once, or have ended. */
export function misplaced(target: SubscriptionRow): string | undefined {
  const { settled, sequencesOf } = target;
  let [last, queued] = [0, 0];
  for (const { sequence } of queueOf(target)) {
    if (sequence === last) return `#${sequence} is queued twice`;
    if (settled.has(sequence)) return `#${sequence} is queued and ${settled.get(sequence)?.state}`;
    last = sequence;
    queued += 1;
  }
  let committed = 0;
  for (const { length } of sequencesOf.values()) committed += length;
  const lost = committed - queued - settled.size;
  return lost === 0 ? undefined : `${lost} entries are neither queued nor ended`;
}
