import type { Deliver, Outcome } from "../../dispatcher/delivery/deliver.ts";
import type { Monitor } from "./monitor.ts";
import type { Process } from "./process.ts";
import type { Post } from "./watch.ts";
import type { World } from "./world.ts";

const DEADLINE_MS = 15_000;

/** How a receiver behaves for a while. `deaf`: it takes the POST, and its answer gets lost. */
const BAD = ["fails", "gone", "hangs", "resets", "deaf", "slow", "mixed"] as const;
type Mood = "well" | (typeof BAD)[number];
type Answer = Exclude<Mood, "mixed"> | "unsent";
/** The longest wait after a failure of our own. */
const POSTPONE_MAX_MS = 30_000;

interface Receiver {
  mood: Mood;
  untilMs: number;
}

/** All receivers and the way to them. Each has a mood, which lasts for a while. */
export class Receivers {
  readonly #world: World;
  readonly #monitor: Monitor;
  readonly #receivers = new Map<string, Receiver>();

  constructor(world: World, monitor: Monitor) {
    this.#world = world;
    this.#monitor = monitor;
  }

  deliverFor(process: Process): Deliver {
    return (request, leave = {}) =>
      new Promise((resolve) => {
        const { loop, random, settings, faulty } = this.#world;
        const post = this.#monitor.posting(process, request);
        if (post === undefined) return;
        if (faulty && random.chance(settings.faults.crash)) process.crash("at a POST");
        else if (faulty && random.chance(settings.faults.pause))
          process.pause(random.between(200, 12_000));
        const answer = this.#answer(post);
        const connectMs = this.#connectMs();
        const answerMs = Math.min(connectMs + this.#answerMs(answer), DEADLINE_MS);
        const end = (outcome: Outcome) => {
          // A process that stood still hears of the abort and of the answer at once: the first counts.
          if (post.ended) return;
          leave.signal?.removeEventListener("abort", abort);
          cancel();
          this.#monitor.answered(post, outcome.kind);
          resolve(outcome);
        };
        const breakOff = () => {
          const kind = post.leftMs === undefined ? "withheld" : "aborted";
          end({ kind, ...measured(process, post) });
        };
        const abort = () => breakOff();
        // The first byte leaves: a process that is dead or stands still sends none.
        loop.after(connectMs, () =>
          process.enter(() => {
            if (post.ended || answer === "unsent") return;
            if (leave.mayBegin?.() === false) return breakOff();
            this.#monitor.leaving(post);
            loop.after(random.latency(1, 50), () => this.#receive(post, answer));
          }),
        );
        const cancel = loop.after(answerMs, () =>
          process.enter(() => end(toOutcome(answer, measured(process, post)))),
        );
        leave.signal?.addEventListener("abort", abort);
      });
  }

  #receive(post: Post, answer: Answer): void {
    if (answer === "well" || answer === "slow" || answer === "deaf") this.#monitor.accepted(post);
  }

  /** How long the look-up and the connection take. */
  #connectMs(): number {
    const { random, settings, faulty } = this.#world;
    if (!faulty || !random.chance(settings.faults.slowLookup)) return random.latency(2, 100);
    const ms = random.between(500, 11_000);
    this.#world.fault("a look-up takes long", ms);
    return ms;
  }

  #answerMs(answer: Answer): number {
    const { random } = this.#world;
    if (answer === "hangs") return DEADLINE_MS;
    if (answer === "slow") return random.between(100, 3_000);
    return random.latency(4, 200);
  }

  #answer(post: Post): Answer {
    const { random, nowMs, settings, faulty } = this.#world;
    if (!faulty) return "well";
    if (random.chance(settings.faults.unsent)) {
      this.#world.fault("our proxy refuses", POSTPONE_MAX_MS);
      return "unsent";
    }
    const { id } = post.subscription;
    let receiver = this.#receivers.get(id);
    if (receiver === undefined || receiver.untilMs <= nowMs) {
      const mood = random.chance(settings.badReceivers) ? random.pick(BAD) : "well";
      const untilMs = nowMs + random.between(1_000, 40_000);
      this.#receivers.set(id, (receiver = { mood, untilMs }));
      this.#world.trace(id, `receiver ${mood}`);
    }
    if (receiver.mood === "mixed") return random.pick(["well", "fails", "gone", "well"] as const);
    return receiver.mood;
  }
}

function measured(process: Process, post: Post) {
  const durationMs = Math.round(process.clock.monotonicMs() - post.startedMs);
  return { durationMs, resent: false };
}

function toOutcome(answer: Answer, measure: ReturnType<typeof measured>): Outcome {
  const answered = (statusCode: number) => ({
    statusCode,
    responseHeaders: {},
    responseExcerpt: "",
    responseTruncated: false,
    ...measure,
  });
  switch (answer) {
    case "well":
    case "slow":
      return { kind: "accepted", ...answered(204) };
    case "unsent":
      return { kind: "unsent", detail: "", ...measure };
    case "gone":
      return { kind: "gone", errorCode: "http_status", ...answered(410) };
    case "fails":
      return { kind: "rejected", errorCode: "http_status", ...answered(500) };
    case "hangs":
      return { kind: "failed", errorCode: "timeout", detail: "", reached: true, ...measure };
    case "resets":
    case "deaf":
      return { kind: "failed", errorCode: "reset", detail: "", reached: true, ...measure };
  }
}
