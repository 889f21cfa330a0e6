import { type InjectedFault, replaceFunction, replaceMethod } from "./replace.ts";

/** Bugs in the leases, in the records of a takeover, and in the clocks. */
export const FAULTS_IN_LEASES: readonly InjectedFault[] = [
  {
    name: "early-takeover",
    seed: 2,
    bug: "A lease is taken over before it has expired.",
    async inject() {
      const { FailureDetector } = await import("../../dispatcher/shards/failure-detector.ts");
      replaceMethod(
        FailureDetector.prototype,
        "read",
        (real) =>
          function (this: InstanceType<typeof FailureDetector>, rows, look) {
            return real.call(this, rows, { ...look, askedMs: look.askedMs + 3_100 });
          },
      );
    },
    breaks: ["one owner", "no expiry of a live lease", "one request per lane"],
  },
  {
    name: "lease-by-store-clock",
    seed: 146,
    bug: "A lease expires when its last renewal is long ago by the clock of PostgreSQL.",
    async inject() {
      const { FailureDetector } = await import("../../dispatcher/shards/failure-detector.ts");
      replaceMethod(
        FailureDetector.prototype,
        "read",
        (real) =>
          function (this: InstanceType<typeof FailureDetector>, rows, look) {
            real.call(this, rows, look);
            // Takes the latest renewal as the time of PostgreSQL.
            const nowMs = Math.max(...rows.map(({ renewedAt }) => renewedAt.getTime()));
            return rows.filter(({ renewedAt }) => renewedAt.getTime() < nowMs - 4_000);
          },
      );
    },
    breaks: ["no expiry of a live lease", "one owner"],
  },
  {
    name: "slow-expiry",
    seed: 22,
    bug: "The renewal waits for the expiry of another lease, which walks through all work of the crashed process.",
    async inject() {
      const { createLeases } = await import("./leases.ts");
      replaceFunction(createLeases, (real) => (deps, process) => {
        const leases = real(deps, process);
        let walking: Promise<unknown> = Promise.resolve();
        return {
          ...leases,
          async expire(dead) {
            const walk = process.clock.sleep(8_000);
            walking = walk;
            await walk;
            return leases.expire(dead);
          },
          async renew(id) {
            await walking;
            return leases.renew(id);
          },
        };
      });
    },
    breaks: ["takeover", "no expiry of a live lease", "no starvation"],
  },
  {
    name: "invented-record",
    seed: 6,
    bug: "The process that expires a lease writes records for attempts that the crashed one may have made.",
    async inject() {
      const { freeAsUnclean } = await import("./leases.ts");
      const { queueOf } = await import("./log.ts");
      replaceFunction(freeAsUnclean, (real) => (tables, id) => {
        const shards = real(tables, id);
        for (const one of tables.subscriptions.values()) {
          const [head] = queueOf(one);
          if (head === undefined || !shards.includes(one.shard)) continue;
          const { eventId, sequence, round, attempt } = head;
          const nextAttemptAtMs = null;
          const record = {
            eventId,
            isNamed: false,
            sequence,
            round,
            attempt,
            outcome: "interrupted",
            nextAttemptAtMs,
          } as const;
          one.attempts.set(`${id} ${sequence}`, record);
        }
        return shards;
      });
    },
    breaks: ["no invented record"],
  },
  {
    name: "unflagged-repeat",
    seed: 22,
    bug: "The record of a possible repeat is not flagged.",
    async inject() {
      const { recordAttempt } = await import("../../dispatcher/delivery/compose.ts");
      replaceFunction(recordAttempt, (real) => (posted, outcome, decision) => {
        return real({ ...posted, possiblyRepeated: false }, outcome, decision);
      });
    },
    breaks: ["possible repeats flagged"],
  },
  {
    name: "unmarked-lanes",
    seed: 101,
    bug: "Only entries of the lanes in the first load are treated as possibly sent by the crashed process.",
    async inject() {
      const { markInDoubt } = await import("../../dispatcher/actor/in-doubt.ts");
      replaceFunction(markInDoubt, (real) => (inDoubt, entry) => {
        if ((inDoubt.lanes?.size ?? 0) < 2) real(inDoubt, entry);
      });
    },
    breaks: ["possible repeats flagged"],
  },
  {
    name: "endless-doubt",
    seed: 6,
    bug: "Entries from long after a takeover are flagged as possible repeats, too.",
    async inject() {
      const { markInDoubt } = await import("../../dispatcher/actor/in-doubt.ts");
      replaceFunction(
        markInDoubt,
        () =>
          ({ marked }, { sequence }) =>
            void marked.add(sequence),
      );
    },
    breaks: ["possible repeats flagged"],
  },
  {
    name: "forgotten-unclean",
    seed: 46,
    bug: "A claim clears the unclean flag of the shard, and its response is lost.",
    async inject() {
      const { claimOf } = await import("./leases.ts");
      replaceFunction(claimOf, (real) => (tables, shard) => {
        const claim = real(tables, shard);
        if (tables.owners[shard] !== null) tables.unclean[shard] = false;
        return claim;
      });
    },
    breaks: ["possible repeats flagged"],
  },
  {
    name: "own-clock",
    seed: 18,
    bug: "The clock of the process determines the due time of a retry.",
    async inject() {
      const { PostgresClock } = await import("../../src/lib/postgres-clock.ts");
      replaceMethod(PostgresClock.prototype, "heard", () => () => {});
    },
    breaks: ["never early", "no starvation", "punctual", "no loss", "settings of the moment"],
  },
  {
    name: "unsafe-after-suspension",
    seed: 60,
    bug: "A process that was suspended trusts its monotonic clock only, and sends before it checks its lease.",
    async inject() {
      const { PostgresClock } = await import("../../src/lib/postgres-clock.ts");
      replaceMethod(
        PostgresClock.prototype,
        "ownMs",
        () =>
          function (this: InstanceType<typeof PostgresClock>) {
            return this.monotonicMs();
          },
      );
    },
    breaks: [
      "one owner",
      "one request per lane",
      "nothing after settled",
      "settings of the moment",
    ],
  },
];
