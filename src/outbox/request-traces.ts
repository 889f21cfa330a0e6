import { AsyncLocalStorage } from "node:async_hooks";

import type { Tx } from "../../db/client.ts";
import type { Session } from "../../db/session.ts";
import type { Clock } from "../lib/clock.ts";
import type { Spans } from "../lib/spans.ts";
import type { Intake } from "./intake.ts";
import { APPEND } from "./queries.ts";
import type { Waker } from "./schedule.ts";

/** A request under way, and the events that it has brought. */
interface RequestTrace {
  readonly startedMs: number;
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
  readonly #clock: Clock;
  readonly #requests = new WeakMap<Request, RequestTrace>();
  readonly #current = new AsyncLocalStorage<RequestTrace>();
  /** A group is of several requests. Whatever is recorded of an event carries the very instant that its request named. */
  readonly #byInstant = new WeakMap<Date, RequestTrace>();
  readonly #byWake = new WeakMap<object, readonly Recorded[]>();

  constructor(spans: Spans, clock: Clock) {
    this.#spans = spans;
    this.#clock = clock;
  }

  begin(request: Request): void {
    const trace = { startedMs: this.#clock.monotonicMs(), eventIds: [] };
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
    const endMs = this.#clock.monotonicMs();
    for (const eventId of trace.eventIds)
      this.#spans.add({
        eventId,
        name: `${request.method} ${route ?? ""}`,
        kind: "root",
        startMs: trace.startedMs,
        endMs,
        failed: status >= 500,
        caller: request.headers.get("traceparent"),
        attributes: { "http.route": route ?? "", "http.response.status_code": status },
      });
  }

  /** Ends now, for each of these events. */
  #add(name: string, startMs: number, recorded: readonly Recorded[]): void {
    const endMs = this.#clock.monotonicMs();
    for (const { eventId } of recorded)
      this.#spans.add({ eventId, name, kind: "internal", startMs, endMs });
  }

  intake(intake: Intake): Intake {
    const traced = async <T>(
      work: (tx: Tx) => Promise<T>,
      run: (work: (tx: Tx) => Promise<T>) => Promise<T>,
    ): Promise<T> => {
      const startMs = this.#clock.monotonicMs();
      let recorded: Recorded[] = [];
      const result = await run((tx) => {
        // A transaction that is the victim of a deadlock runs again.
        recorded = [];
        return work(this.#watch(tx, recorded));
      });
      this.#add("commit", startMs, recorded);
      for (const { trace, eventId } of recorded) trace.eventIds.push(eventId);
      return result;
    };
    return {
      ...intake,
      transaction: (partnerIds, work, options) =>
        traced(work, (watched) => intake.transaction(partnerIds, watched, options)),
      group: (work) => traced(work, (watched) => intake.group(watched)),
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
        const startMs = this.#clock.monotonicMs();
        await schedule.wake(wakes);
        const recorded = wakes.flatMap((wake) => this.#byWake.get(wake) ?? []);
        this.#add("wake", startMs, [...new Set(recorded)]);
      },
    };
  }
}

/** The actions that the append was given. */
function appendedBy(given: object): readonly { eventId: string; occurredAt: Date }[] {
  return Reflect.get(given, "given");
}
