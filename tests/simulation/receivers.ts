import type { Deliver, PostResult } from "../../dispatcher/delivery/deliver.ts";
import type { Monitor } from "./monitor.ts";
import type { Process } from "./process.ts";
import type { Post } from "./watch.ts";
import type { World } from "./world.ts";

const DEADLINE_MS = 15_000;
/** The excerpt of a response to a body that names a person. */
export const NAME = "Ada";

/** The behaviours of a receiver for a while. `deaf`: it accepts the POST, and its response is lost. */
const BAD = ["fails", "gone", "hangs", "resets", "deaf", "slow", "mixed"] as const;
type Mood = "well" | (typeof BAD)[number];
type Answer = Exclude<Mood, "mixed"> | "unsent";
/** The behaviours that accept the POST, whatever the process gets back. */
const TAKES: ReadonlySet<Answer> = new Set(["well", "slow", "deaf"]);
/** The longest wait after a failure of our own. */
const POSTPONE_MAX_MS = 30_000;

interface Receiver {
  mood: Mood;
  untilMs: number;
}

/** All receivers and the network to them. Each has a mood, which lasts for a while. */
export class Receivers {
  readonly #world: World;
  readonly #monitor: Monitor;
  readonly #receivers = new Map<string, Receiver>();

  constructor(world: World, monitor: Monitor) {
    this.#world = world;
    this.#monitor = monitor;
  }

  deliverFor(process: Process): Deliver {
    return (request, control = {}) =>
      new Promise((resolve) => {
        const { loop, random, settings, faulty } = this.#world;
        const post = this.#monitor.posting(process, request);
        if (post === undefined) return;
        if (faulty && random.chance(settings.faults.crash)) process.crash("at a POST");
        else if (faulty && random.chance(settings.faults.pause))
          process.pause(random.between(200, 12_000));
        const answer = this.#answer(post);
        const end = (outcome: PostResult) => {
          // A process that stood still gets the abort and the response at once: the first one counts.
          if (post.ended) return;
          cancel();
          this.#monitor.answered(post, outcome.kind);
          resolve(outcome);
        };
        const abort = () => {
          const kind = post.leftMs === undefined ? "withheld" : "aborted";
          end({ kind, ...measured(post) });
        };
        const answerIn = (ms: number, as: Answer) =>
          loop.after(ms, () => process.enter(() => end(toOutcome(as, post))));
        const cancel = answerIn(DEADLINE_MS, "hangs");
        // The first byte leaves. A process that is dead or stands still sends none.
        loop.after(this.#connectMs(), () =>
          process.enter(() => {
            if (post.ended) return;
            if (answer === "unsent") return end(toOutcome(answer, post));
            if (control.mayBegin?.() === false) return abort();
            this.#monitor.leaving(post);
            if (TAKES.has(answer)) this.#monitor.accepted(post);
            if (answer !== "hangs") answerIn(this.#answerMs(answer), answer);
          }),
        );
        control.abortable?.(abort);
      });
  }

  /** Returns the time of the look-up and the connection. */
  #connectMs(): number {
    const { random, settings, faulty } = this.#world;
    if (!faulty || !random.chance(settings.faults.slowLookup)) return random.latency(2, 100);
    const ms = random.between(500, 11_000);
    this.#world.fault("a look-up takes long", ms);
    return ms;
  }

  #answerMs(answer: Answer): number {
    const { random } = this.#world;
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

function measured({ process, startedMonotonicMs }: Post) {
  const durationMs = Math.round(process.clock.monotonicMs() - startedMonotonicMs);
  return { durationMs, resent: false };
}

function toOutcome(answer: Answer, post: Post): PostResult {
  const measure = measured(post);
  const answered = (statusCode: number) => ({
    statusCode,
    responseHeaders: {},
    // Receivers echo what they get.
    responseExcerpt: post.isNamed ? NAME : "",
    responseTruncated: false,
    ...measure,
  });
  switch (answer) {
    case "well":
    case "slow":
      return { kind: "accepted", ...answered(204) };
    case "unsent":
      return { kind: "unsent", detail: "", fault: "proxy", ...measure };
    case "gone":
      return { kind: "gone", errorCode: "http_status", ...answered(410) };
    case "fails":
      return { kind: "rejected", errorCode: "http_status", ...answered(500) };
    case "hangs":
      return { kind: "failed", errorCode: "timeout", detail: "", ...measure };
    case "resets":
    case "deaf":
      return { kind: "failed", errorCode: "reset", detail: "", ...measure };
  }
}
