import type { Deliver, PostResult } from "../../dispatcher/delivery/deliver.ts";
import type { OwnPart } from "../../dispatcher/http/failure.ts";
import type { Monitor } from "./monitor.ts";
import type { Process } from "./process.ts";
import type { Post } from "./watch.ts";
import type { World } from "./world.ts";

const DEADLINE_MS = 15_000;
/** The excerpt of a response to a body that names a person. */
export const NAME = "Ada";

/** The behaviours of a receiver for a while. `deaf`: it accepts the POST, and its response is lost. */
const BAD = ["fails", "gone", "hangs", "resets", "deaf", "slow", "mixed"] as const;
/** The behaviours of a receiver that is down: it refuses connections, or nothing answers at its address. */
const DOWN = ["refuses", "dark"] as const;
type Mood = "well" | (typeof BAD)[number] | (typeof DOWN)[number];
/** `lost`: our network is lost. */
type Answer = Exclude<Mood, "mixed"> | "unsent" | "lost";
const UNCONNECTED: ReadonlySet<Answer> = new Set(["unsent", "lost", ...DOWN]);
/** The fewest partners of which a lost network is certain, and the time for which a proof of it counts. */
const CERTAIN_PARTNERS = 3;
const PROOF_MS = 1_000;
/** The behaviours that accept the POST, whatever the process gets back. */
const TAKES: ReadonlySet<Answer> = new Set(["well", "slow", "deaf"]);
/** The longest wait after a failure of our own. */
const POSTPONE_MAX_MS = 30_000;

interface Receiver {
  mood: Mood;
  untilMs: number;
}

/** What the attempts of one process have shown about the network, by its monotonic clock. */
interface Shown {
  provedMs: number;
  /** The hosts that failed before a proof and were not reached since. */
  readonly down: Set<string>;
  /** The other hosts that failed since the last proof, with their partners. */
  readonly failed: Map<string, number>;
  isLost: boolean;
  /** When a proof has ended the last certain outage. */
  foundMs: number;
}

/** All receivers and the network to them. Each has a mood, which lasts for a while. */
export class Receivers {
  readonly #world: World;
  readonly #monitor: Monitor;
  readonly #receivers = new Map<string, Receiver>();
  readonly #shown = new WeakMap<Process, Shown>();
  #lostUntilMs = 0;

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
          post.blame = this.#blame(post, outcome);
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
            if (UNCONNECTED.has(answer)) return end(toOutcome(answer, post));
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

  /** Decides whose failure a result is, where contract 7.8 leaves no doubt. */
  #blame({ process, startedMonotonicMs, subscription }: Post, outcome: PostResult): Post["blame"] {
    let shown = this.#shown.get(process);
    if (shown === undefined) {
      const never = Number.NEGATIVE_INFINITY;
      shown = {
        provedMs: never,
        down: new Set(),
        failed: new Map(),
        isLost: false,
        foundMs: never,
      };
      this.#shown.set(process, shown);
    }
    const { host, partnerId } = subscription;
    const endedMs = process.clock.monotonicMs();
    const isFailed = outcome.kind === "failed";
    if (outcome.works?.includes("network")) {
      shown.provedMs = endedMs;
      if (shown.isLost) shown.foundMs = endedMs;
      shown.isLost = false;
      for (const other of shown.failed.keys()) shown.down.add(other);
      shown.failed.clear();
      shown.down.delete(host);
      return isFailed ? "theirs" : undefined;
    }
    if (!isFailed || outcome.fault === undefined) return undefined;
    if (!shown.down.has(host)) shown.failed.set(host, partnerId);
    if (startedMonotonicMs < shown.foundMs) return "ours";
    if (shown.provedMs >= Math.min(startedMonotonicMs, endedMs - PROOF_MS)) return "theirs";
    shown.isLost ||= new Set(shown.failed.values()).size >= CERTAIN_PARTNERS;
    return shown.isLost ? "ours" : undefined;
  }

  #answerMs(answer: Answer): number {
    const { random } = this.#world;
    if (answer === "slow") return random.between(100, 3_000);
    return random.latency(4, 200);
  }

  /** Whether our network is lost now. It gets lost with this chance, for every process. */
  #isLost(chance: number): boolean {
    const { random, nowMs } = this.#world;
    if (nowMs >= this.#lostUntilMs && random.chance(chance)) {
      const ms = random.between(2_000, 30_000);
      this.#world.fault("our network is lost", ms + POSTPONE_MAX_MS);
      this.#lostUntilMs = nowMs + ms;
    }
    return nowMs < this.#lostUntilMs;
  }

  #answer(post: Post): Answer {
    const { random, nowMs, settings, faulty } = this.#world;
    if (!faulty) return "well";
    if (random.chance(settings.faults.unsent)) {
      this.#world.fault("our proxy refuses", POSTPONE_MAX_MS);
      return "unsent";
    }
    if (settings.faults.outage > 0 && this.#isLost(settings.faults.outage)) return "lost";
    const { id } = post.subscription;
    const moods = settings.faults.outage > 0 ? [...BAD, ...DOWN] : BAD;
    let receiver = this.#receivers.get(id);
    if (receiver === undefined || receiver.untilMs <= nowMs) {
      const mood = random.chance(settings.badReceivers) ? random.pick(moods) : "well";
      const untilMs = nowMs + random.between(1_000, 40_000);
      this.#receivers.set(id, (receiver = { mood, untilMs }));
      this.#world.trace(id, `receiver ${mood}`);
    }
    if (receiver.mood === "mixed") return random.pick(["well", "fails", "gone", "well"] as const);
    return receiver.mood;
  }
}

/** The parts that a connection to a receiver, or its refusal, has shown to work. */
const works: readonly OwnPart[] = ["network"];

function measured({ process, startedMonotonicMs }: Post) {
  const durationMs = Math.round(process.clock.monotonicMs() - startedMonotonicMs);
  return { durationMs, resent: false };
}

function toOutcome(answer: Answer, post: Post): PostResult {
  const measure = measured(post);
  const reached = post.leftMs === undefined ? [] : works;
  const answered = (statusCode: number) => ({
    statusCode,
    responseHeaders: {},
    // Receivers echo what they get.
    responseExcerpt: post.isNamed ? NAME : "",
    responseTruncated: false,
    works,
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
      // Before the first byte, the look-up took too long.
      return { kind: "failed", errorCode: "timeout", detail: "", works: reached, ...measure };
    case "resets":
    case "deaf":
      return { kind: "failed", errorCode: "reset", detail: "", works, ...measure };
    case "refuses":
      return { kind: "failed", errorCode: "connect", detail: "", works, ...measure };
    case "dark":
    case "lost":
      return { kind: "failed", errorCode: "connect", detail: "", fault: "network", ...measure };
  }
}
