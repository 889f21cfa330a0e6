import type { Plant } from "./plant.ts";
import type { Receivers } from "./receivers.ts";
import { drawInstead, replaceFunction, replaceMethod } from "./replace.ts";

/** Bugs of what the dispatchers stand on: the SQL as the simulated stores carry it out, and the HTTP client. */
export const PLANTS_IN_STORES: readonly Plant[] = [
  {
    name: "dropped-fence",
    seed: 46,
    bug: "A commit does not look whether its dispatcher was declared dead.",
    async grow() {
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
    seed: 135,
    bug: "The release of a shard that comes late takes away what the same dispatcher has claimed again.",
    async grow() {
      // Shards move all the time, and requests about them are late.
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
    breaks: ["one owner", "one request per lane", "possible repeats told"],
  },
  {
    name: "blamed-receiver",
    seed: 20,
    bug: "What did not get past our own proxy counts as a failure of the receiver.",
    async grow() {
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
                ? { ...outcome, kind: "failed", errorCode: "connect", reached: false }
                : outcome;
            };
          },
      );
    },
    breaks: ["no invented record"],
  },
  {
    name: "crowded-tests",
    seed: 641,
    bug: "Tests that wait for a retry keep those that are due from being read.",
    async grow() {
      const { nextTests } = await import("./dispatch-store.ts");
      replaceFunction(nextTests, () => (outbox) => outbox.filter((row) => row.isTest).slice(0, 16));
    },
    breaks: ["prompt", "punctual", "no starvation"],
  },
  {
    name: "missing-sweep",
    seed: 2,
    bug: "The sweep finds nothing, so a lost wake is lost for good.",
    async grow() {
      const { sweepShards } = await import("./dispatch-store.ts");
      replaceFunction(sweepShards, () => () => []);
    },
    breaks: ["possible repeats told", "no starvation", "no loss"],
  },
  {
    name: "sequence-at-statement",
    seed: 13,
    bug: "Sequences are drawn by the statement and not in commit order: `sequence > last` skips what commits late.",
    async grow() {
      const { drawSequences, holdSequences } = await import("./writers.ts");
      replaceFunction(holdSequences, () => (targets, work) => work(targets));
      replaceFunction(drawSequences, (real) => (targets, events) => {
        const { baseOf, commit } = real(targets, events);
        for (const target of targets) commit(target);
        return { baseOf, commit: () => {} };
      });
    },
    breaks: ["one place", "committed in order", "order", "no loss", "no starvation"],
  },
  {
    name: "counter-outside",
    seed: 2,
    bug: "The failure counter is written after the transaction.",
    async grow() {
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
    bug: "A batch takes the events recorded between two instants, not the rows that wait.",
    async grow() {
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
    bug: "The next chunk of a batch does not go on with the review that the last one was cut in.",
    async grow() {
      const { chunkOf } = await import("./batch.ts");
      replaceFunction(chunkOf, (real) => (subscription, window, limit) => {
        return real(subscription, { ...window, reviewId: null }, limit);
      });
    },
    breaks: ["batch"],
  },
];
