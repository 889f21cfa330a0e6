import { AsyncLocalStorage } from "node:async_hooks";

import type { Tx } from "../../db/client.ts";
import type { Session } from "../../db/session.ts";
import type { Spans } from "../lib/spans.ts";
import type { WriterPool } from "./writer-pool.ts";
import { APPEND } from "./queries.ts";
import type { Waker } from "./schedule.ts";

/** A request under way, and the events that it has brought. */
interface RequestTrace {
  readonly end: ReturnType<Spans["begin"]>;
  readonly eventIds: string[];
}

interface Recorded {
  readonly eventId: string;
  readonly trace: RequestTrace;
}

/**
 * The part of a trace that the API has: the request that brought an event, the commit that made it last, and the wake.
 * It is put around the intake and the schedule where tracing is on; elsewhere there is nothing of it.
 */
export class RequestTraces {
  readonly #spans: Spans;
  readonly #requests = new WeakMap<Request, RequestTrace>();
  readonly #current = new AsyncLocalStorage<RequestTrace>();
  /** A group is of several requests. Whatever is recorded of an event carries the very instant that its request named. */
  readonly #byInstant = new WeakMap<Date, RequestTrace>();
  readonly #byWake = new WeakMap<object, readonly Recorded[]>();

  constructor(spans: Spans) {
    this.#spans = spans;
  }

  begin(request: Request): void {
    const trace = { end: this.#spans.begin(), eventIds: [] };
    this.#requests.set(request, trace);
    this.#current.enterWith(trace);
  }

  /** The events of the request of now, by their instants: they may be recorded together with others. */
  came(instants: readonly Date[]): void {
    const trace = this.#current.getStore();
    if (trace !== undefined) for (const at of instants) this.#byInstant.set(at, trace);
  }

  /** Tells how long the request of these events lasted. */
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
    const traced = async <T>(
      work: (tx: Tx) => Promise<T>,
      run: (work: (tx: Tx) => Promise<T>) => Promise<T>,
    ): Promise<T> => {
      const end = this.#spans.begin();
      let recorded: Recorded[] = [];
      const result = await run((tx) => {
        // A transaction that is the victim of a deadlock runs again.
        recorded = [];
        return work(this.#watch(tx, recorded));
      });
      for (const { trace, eventId } of recorded) {
        end({ eventId, name: "commit" });
        trace.eventIds.push(eventId);
      }
      return result;
    };
    return {
      ...writerPool,
      transaction: (partnerIds, work, options) =>
        traced(work, (watched) => writerPool.transaction(partnerIds, watched, options)),
      group: (work) => traced(work, (watched) => writerPool.group(watched)),
    };
  }

  /** Notes which events a transaction appends, and whom it will wake. */
  #watch(tx: Tx, recorded: Recorded[]): Tx {
    const watched =
      (run: Session["run"]): Session["run"] =>
      async (statement, given) => {
        const rows = await run(statement, given);
        if (statement.name !== APPEND) return rows;
        for (const { eventId, occurredAt } of appendedBy(given)) {
          const trace = this.#byInstant.get(occurredAt) ?? this.#current.getStore();
          if (trace !== undefined) recorded.push({ eventId, trace });
        }
        for (const row of rows) this.#byWake.set(row, recorded);
        return rows;
      };
    return Object.assign(tx, { run: watched(tx.run.bind(tx)), runLast: watched(tx.runLast) });
  }

  waker<W extends Waker>(schedule: W): W {
    return {
      ...schedule,
      wake: async (wakes) => {
        const end = this.#spans.begin();
        await schedule.wake(wakes);
        const recorded = wakes.flatMap((wake) => this.#byWake.get(wake) ?? []);
        for (const { eventId } of new Set(recorded)) end({ eventId, name: "wake" });
      },
    };
  }
}

/** The actions that the append was given. */
function appendedBy(given: object): readonly { eventId: string; occurredAt: Date }[] {
  return Reflect.get(given, "given");
}
