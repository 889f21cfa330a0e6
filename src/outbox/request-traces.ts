import { AsyncLocalStorage } from "node:async_hooks";

import type { Tx } from "../../db/client.ts";
import type { Run } from "../../db/session.ts";
import type { Spans } from "../lib/spans.ts";
import type { WriterPool } from "./writer-pool.ts";
import { APPEND } from "./queries.ts";
import type { Schedule, Waker } from "./schedule.ts";

/** A request in progress and the events that it has recorded. */
interface RequestTrace {
  readonly end: ReturnType<Spans["begin"]>;
  readonly eventIds: string[];
}

/** The requests of recorded events, by event id. */
type RecordedEvents = Map<string, RequestTrace>;

/**
 * Traces the API's part of an event: the request, the commit and the wake. It wraps the writer pool and the schedule.
 * It is created only if tracing is on.
 */
export class RequestTraces {
  readonly #spans: Spans;
  readonly #requests = new WeakMap<Request, RequestTrace>();
  readonly #current = new AsyncLocalStorage<RequestTrace>();
  /**
   * Requests in progress, by the instants of their events. A group commit records events of several requests, and each
   * event keeps the Date object that its request created, so the object identifies the request.
   */
  readonly #byInstant = new WeakMap<Date, RequestTrace>();
  readonly #byWake = new WeakMap<object, RecordedEvents>();

  constructor(spans: Spans) {
    this.#spans = spans;
  }

  begin(request: Request): void {
    const trace = { end: this.#spans.begin(), eventIds: [] };
    this.#requests.set(request, trace);
    this.#current.enterWith(trace);
  }

  /**
   * Registers the instants of the current request's events, because a group commit may record events of several
   * requests.
   */
  came(instants: readonly Date[]): void {
    const trace = this.#current.getStore();
    if (trace !== undefined) for (const at of instants) this.#byInstant.set(at, trace);
  }

  /** Ends the root spans of the request's events. */
  answered(request: Request, route: string | undefined, status: number): void {
    const trace = this.#requests.get(request);
    if (trace === undefined) return;
    for (const eventId of trace.eventIds)
      trace.end({
        eventId,
        name: `${request.method} ${route ?? ""}`,
        kind: "root",
        failed: status >= 500,
        caller: request.headers.get("traceparent"),
        attributes: { "http.route": route ?? "", "http.response.status_code": status },
      });
  }

  writerPool(writerPool: WriterPool): WriterPool {
    const traced = async <T>(commit: (recorded: RecordedEvents) => Promise<T>) => {
      const end = this.#spans.begin();
      const recorded: RecordedEvents = new Map();
      const result = await commit(recorded);
      for (const [eventId, trace] of recorded) {
        end({ eventId, name: "commit" });
        trace.eventIds.push(eventId);
      }
      return result;
    };
    const watched =
      <T>(work: (tx: Tx) => Promise<T>, recorded: RecordedEvents) =>
      (tx: Tx) => {
        // A transaction that was rolled back because of a deadlock runs again, so the events that it recorded before
        // are removed.
        recorded.clear();
        return work(Object.assign(tx, { runLast: this.#watch(tx.runLast, recorded) }));
      };
    return {
      ...writerPool,
      transaction: (partnerIds, work, options) =>
        traced((to) => writerPool.transaction(partnerIds, watched(work, to), options)),
      group: (work) => traced((to) => writerPool.group(watched(work, to))),
      run: (statement, given) => traced((to) => this.#watch(writerPool.run, to)(statement, given)),
    };
  }

  /**
   * Wraps the function that runs a statement. It stores the events that the statement appends, and the subscriptions
   * that it will wake.
   */
  #watch(run: Run, recorded: RecordedEvents): Run {
    return async (statement, given) => {
      const rows = await run(statement, given);
      if (!statement.name.startsWith(APPEND)) return rows;
      for (const { eventId, occurredAt } of appendedBy(given)) {
        const trace = this.#byInstant.get(occurredAt) ?? this.#current.getStore();
        if (trace !== undefined) recorded.set(eventId, trace);
      }
      for (const row of rows) this.#byWake.set(row, recorded);
      return rows;
    };
  }

  waker(schedule: Pick<Schedule, keyof Waker>): Pick<Schedule, keyof Waker> {
    return {
      ...schedule,
      wake: async (wakes) => {
        const end = this.#spans.begin();
        await schedule.wake(wakes);
        const eventIds = wakes.flatMap((wake) => [...(this.#byWake.get(wake)?.keys() ?? [])]);
        for (const eventId of new Set(eventIds)) end({ eventId, name: "wake" });
      },
    };
  }
}

/** Returns the actions that were passed to the statement that appends entries. */
function appendedBy(given: object): readonly { eventId: string; occurredAt: Date }[] {
  return Reflect.get(given, "given");
}
