import type { Receivers } from "./receivers.ts";
import { drawInstead, type InjectedFault, replaceFunction, replaceMethod } from "./replace.ts";

/** Bugs below the dispatcher: in the simulated SQL of the stores, and in the HTTP client. */
export const FAULTS_IN_STORES: readonly InjectedFault[] = [
  {
    name: "stored-response",
    seed: 29,
    bug: "A commit stores the response to an event that was erased while its POST was under way.",
    async inject() {
      const { keepsResponse } = await import("./commit.ts");
      replaceFunction(keepsResponse, () => () => true);
    },
    breaks: ["no response of the erased"],
  },
  {
    name: "dropped-fence",
    seed: 46,
    bug: "A commit does not check whether the lease of its dispatcher has expired.",
    async inject() {
      const { leaseOf } = await import("./commit.ts");
      replaceFunction(leaseOf, (real) => (tables, id) => {
        const [any] = tables.dispatchers.values();
        return real(tables, id) ?? (any && { ...any, id, holders: 0 });
      });
    },
    breaks: ["fencing"],
  },
  {
    name: "late-release",
    seed: 161,
    bug: "A late release of a shard takes it away from the same dispatcher, which has claimed it again.",
    async inject() {
      // Makes shards move all the time, and their requests late.
      await drawInstead((noFaults) => ({
        processes: 2,
        faults: { ...noFaults, request: 0.01, longLate: 0.5, join: 0.2, stop: 0.1 },
      }));
      const { releaseShards } = await import("./leases.ts");
      replaceFunction(releaseShards, (real) => (tables, id, claims) => {
        const present = Array.from(
          claims,
          ([shard, claim]) => [shard, { ...claim, epoch: tables.epochs[shard] ?? 0 }] as const,
        );
        real(tables, id, new Map(present));
      });
    },
    breaks: ["one owner", "one request per lane", "possible repeats flagged"],
  },
  {
    name: "blamed-receiver",
    seed: 7,
    bug: "A POST that did not get past our proxy counts as a failure of the receiver.",
    async inject() {
      const { Receivers } = await import("./receivers.ts");
      replaceMethod(
        Receivers.prototype,
        "deliverFor",
        (real) =>
          function (this: Receivers, process) {
            const deliver = real.call(this, process);
            return async (request, leave) => {
              const outcome = await deliver(request, leave);
              return outcome.kind === "unsent"
                ? { ...outcome, kind: "failed", errorCode: "connect", fault: undefined }
                : outcome;
            };
          },
      );
    },
    breaks: ["no invented record"],
  },
  {
    name: "starved-tests",
    seed: 641,
    bug: "Tests that wait for a retry keep due tests from being read.",
    async inject() {
      const { nextTests } = await import("./dispatch-store.ts");
      replaceFunction(nextTests, () => (outbox) => outbox.filter((row) => row.isTest).slice(0, 16));
    },
    breaks: ["prompt", "punctual", "no starvation"],
  },
  {
    name: "missing-sweep",
    seed: 2,
    bug: "The sweep finds nothing, so a lost wake is lost for good.",
    async inject() {
      const { sweepShards } = await import("./dispatch-store.ts");
      replaceFunction(sweepShards, () => () => []);
    },
    breaks: ["possible repeats flagged", "no starvation", "no loss"],
  },
  {
    name: "sequence-at-statement",
    seed: 13,
    bug: "Sequences are drawn by the statement and not in commit order: `sequence > last` skips late commits.",
    async inject() {
      const { drawSequences, holdSequences } = await import("./writers.ts");
      replaceFunction(holdSequences, () => (targets, work) => work(targets));
      replaceFunction(drawSequences, (real) => (targets, events) => {
        const { baseOf, commit } = real(targets, events);
        for (const target of targets) commit(target);
        return { baseOf, commit: () => {} };
      });
    },
    breaks: [
      "one place",
      "committed in order",
      "order",
      "no loss",
      "no starvation",
      "numbers without gaps",
    ],
  },
  {
    name: "counter-outside",
    seed: 2,
    bug: "The failure counter is written after the transaction.",
    async inject() {
      const { countFailures } = await import("./commit.ts");
      replaceFunction(countFailures, (real) => (world, settled) => {
        world.loop.after(world.random.between(0.1, 40), () => void real(world, settled));
        return [];
      });
    },
    breaks: ["exact counter"],
  },
  {
    name: "batch-by-time",
    seed: 2,
    bug: "A batch takes the events recorded between two instants, and not the waiting rows.",
    async inject() {
      const { visibleEvents } = await import("./batch.ts");
      replaceFunction(visibleEvents, (real) => (subscription) => {
        const fromMs = subscription.lastBatchAtMs ?? subscription.createdAtMs;
        return real(subscription).filter((event) => event.recordedAtMs > fromMs);
      });
    },
    breaks: ["no loss", "batch"],
  },
  {
    name: "forgetful-chunk",
    seed: 2,
    bug: "The next chunk of a batch does not continue with the review in which the last one ended.",
    async inject() {
      const { chunkOf } = await import("./batch.ts");
      replaceFunction(chunkOf, (real) => (subscription, window, limit) => {
        return real(subscription, { ...window, reviewId: null }, limit);
      });
    },
    breaks: ["batch"],
  },
];

/** Bugs in the log: in its offset, in the rows of passed events, and in the loads that read both. */
export const FAULTS_IN_LOG: readonly InjectedFault[] = [
  {
    name: "rowless-pass",
    seed: 1,
    bug: "The offset moves past an unsettled event and gives it no row.",
    async inject() {
      const { passEvents } = await import("./log.ts");
      replaceFunction(passEvents, () => () => {});
    },
    breaks: ["one place", "no outcome in vain", "no invented delivery", "settled is settled"],
  },
  {
    name: "forgotten-retry",
    seed: 2,
    bug: "A log event that waits for a retry gets no row.",
    async inject() {
      const { writeRetry } = await import("./log.ts");
      replaceFunction(writeRetry, () => () => {});
    },
    breaks: ["one place", "order"],
  },
  {
    name: "doubled-entry",
    seed: 1,
    bug: "A load gives rows to log events and leaves the offset before them.",
    async inject() {
      const { passEvents, passLogged } = await import("./log.ts");
      replaceFunction(passLogged, () => (target) => passEvents(target, target.settledThrough + 1));
    },
    breaks: ["one place", "committed in order", "no repeat", "nothing after settled", "order"],
  },
  {
    name: "unmoved-skip",
    seed: 16,
    bug: "A skip leaves the offset where it is.",
    async inject() {
      const { moveBySkip } = await import("./log.ts");
      replaceFunction(moveBySkip, () => () => {});
    },
    breaks: ["one place", "nothing after settled", "no loss"],
  },
  {
    name: "final-skip",
    seed: 32,
    bug: "An entry that a skip has settled while its POST was under way stays skipped, although the POST ends well.",
    async inject() {
      const { skippedEntry } = await import("./log.ts");
      replaceFunction(skippedEntry, () => () => undefined);
    },
    breaks: ["no outcome in vain"],
  },
  {
    name: "early-load",
    seed: 1,
    bug: "A load begins with the last event that the offset has passed.",
    async inject() {
      const { logBegin } = await import("./log.ts");
      replaceFunction(logBegin, (real) => (target, after) => real(target, after) - 1);
    },
    breaks: ["no repeat", "nothing after settled", "one request per lane", "order"],
  },
  {
    name: "offset-twice",
    seed: 1,
    bug: "The record of an event that the offset has passed moves it again.",
    async inject() {
      const { isAhead } = await import("./log.ts");
      replaceFunction(
        isAhead,
        () =>
          (_, { isLogged }) =>
            isLogged,
      );
    },
    breaks: ["one place", "committed in order", "nothing after settled", "no repeat"],
  },
  {
    name: "skipping-attempt",
    seed: 1,
    bug: "An event that the offset passes before its POST counts as failed once.",
    async inject() {
      const { passEvents } = await import("./log.ts");
      replaceFunction(passEvents, (real) => (target, through) => {
        const known = new Set(target.outbox);
        real(target, through);
        for (const row of target.outbox) if (!known.has(row)) row.attempt = 2;
      });
    },
    breaks: ["right attempt", "no outcome in vain", "no repeat"],
  },
  {
    name: "postponed-ahead",
    seed: 135,
    bug: "A row after the offset is postponed, and a load shows it before events of its review in the log.",
    async inject() {
      const { mayPostpone } = await import("./log.ts");
      replaceFunction(mayPostpone, () => () => true);
    },
    breaks: ["order"],
  },
  {
    name: "forgotten-review",
    seed: 1,
    bug: "Entries behind one that waits are postponed for good, although it ends.",
    async inject() {
      const { postponeBehind } = await import("./log.ts");
      replaceFunction(postponeBehind, (real) => (target, nowMs) => {
        real(target, nowMs);
        for (const row of target.outbox)
          if (row.behindUntilMs !== undefined) row.behindUntilMs += 86_400_000;
      });
    },
    breaks: ["prompt", "punctual", "no starvation"],
  },
  {
    name: "rows-ahead",
    seed: 332,
    bug: "A load shows rows after the window of the log that it has searched.",
    async inject() {
      // Makes runs of one review that waits for a retry, longer than the window of a load, with redeliveries of another
      // review behind them.
      await drawInstead((noFaults) => ({
        window: 1,
        changeEveryMs: 3_000,
        reviewsPerPartner: 2,
        eventsPerWrite: 12,
        badReceivers: 0.5,
        faults: noFaults,
      }));
      const { withinWindow } = await import("./log.ts");
      replaceFunction(withinWindow, () => (entries) => [...entries]);
    },
    breaks: ["order"],
  },
];
