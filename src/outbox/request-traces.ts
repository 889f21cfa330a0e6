import { AsyncLocalStorage } from "node:async_hooks";

import type { Tx } from "../../db/client.ts";
import type { Session } from "../../db/session.ts";
import type { Clock } from "../lib/clock.ts";
import type { Spans } from "../lib/spans.ts";
import type { Intake } from "./intake.ts";
import { APPEND } from "./queries.ts";
import type { Waker } from "./schedule.ts";

type Lasted = readonly [startMs: number, endMs: number];

/** What was done for an event before its request was answered. */
interface Traced {
  readonly eventId: string;
  commit: Lasted | undefined;
  wake: Lasted | undefined;
}

interface RequestTrace {
  readonly startedMs: number;
  readonly events: Traced[];
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
  readonly #byWake = new WeakMap<object, readonly Traced[]>();

  constructor(spans: Spans, clock: Clock) {
    this.#spans = spans;
    this.#clock = clock;
  }

  begin(request: Request): void {
    const trace = { startedMs: this.#clock.monotonicMs(), events: [] };
    this.#requests.set(request, trace);
    this.#current.enterWith(trace);
  }

  /** The events of the request of now, by their instants: they may be recorded together with others. */
  came(instants: readonly Date[]): void {
    const trace = this.#current.getStore();
    if (trace !== undefined) for (const at of instants) this.#byInstant.set(at, trace);
  }

  /** Tells the traces of the events that the request has brought. */
  answered(request: Request, route: string | undefined, status: number): void {
    const trace = this.#requests.get(request);
    if (trace === undefined) return;
    const endMs = this.#clock.monotonicMs();
    for (const { eventId, commit, wake } of trace.events) {
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
      this.#add(eventId, "commit", commit);
      this.#add(eventId, "wake", wake);
    }
  }

  #add(eventId: string, name: string, lasted: Lasted | undefined): void {
    if (lasted === undefined) return;
    const [startMs, endMs] = lasted;
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
        return work(this.#watch(tx, (one) => recorded.push(one)));
      });
      const commit = [startMs, this.#clock.monotonicMs()] as const;
      for (const { trace, traced: one } of recorded) {
        one.commit = commit;
        trace.events.push(one);
      }
      return result;
    };
    return {
      transaction: (partnerIds, work, options) =>
        traced(work, (watched) => intake.transaction(partnerIds, watched, options)),
      group: (work) => traced(work, (watched) => intake.group(watched)),
      isStuck: (partnerIds) => intake.isStuck(partnerIds),
    };
  }

  /** Sees which events a transaction appends, and whom it will wake. */
  #watch(tx: Tx, saw: (recorded: Recorded) => void): Tx {
    const watched = (run: Session["run"]) => this.#watchRun(run, saw);
    return Object.assign(tx, { run: watched(tx.run.bind(tx)), runLast: watched(tx.runLast) });
  }

  #watchRun(run: Session["run"], saw: (recorded: Recorded) => void): Session["run"] {
    return async (statement, given) => {
      const rows = await run(statement, given);
      if (statement.name !== APPEND) return rows;
      const traced: Traced[] = [];
      for (const { event_id: eventId, occurred_at: at } of appendedBy(given)) {
        const trace = this.#byInstant.get(at) ?? this.#current.getStore();
        if (trace === undefined) continue;
        const one = { eventId, commit: undefined, wake: undefined };
        traced.push(one);
        saw({ trace, traced: one });
      }
      for (const row of rows) this.#byWake.set(row, traced);
      return rows;
    };
  }

  waker<W extends Waker>(schedule: W): W {
    return {
      ...schedule,
      wake: async (wakes) => {
        const startMs = this.#clock.monotonicMs();
        await schedule.wake(wakes);
        const lasted = [startMs, this.#clock.monotonicMs()] as const;
        for (const wake of wakes) for (const one of this.#byWake.get(wake) ?? []) one.wake = lasted;
      },
    };
  }
}

interface Recorded {
  readonly trace: RequestTrace;
  readonly traced: Traced;
}

/** The rows that the append was given. */
function appendedBy(given: object): readonly { event_id: string; occurred_at: Date }[] {
  return Reflect.get(given, "given");
}
