import { type Plant, replaceFunction, replaceMethod } from "./replace.ts";

/** Bugs in the leases, in the records of a takeover, and in the clocks. */
export const PLANTS_IN_LEASES: readonly Plant[] = [
  {
    name: "early-takeover",
    seed: 2,
    bug: "A lease is taken over before it has run out.",
    async grow() {
      const { Heartbeats } = await import("../../dispatcher/shards/failure-detector.ts");
      replaceMethod(
        Heartbeats.prototype,
        "read",
        (real) =>
          function (this: InstanceType<typeof Heartbeats>, rows, look) {
            return real.call(this, rows, { ...look, askedMs: look.askedMs + 3_100 });
          },
      );
    },
    breaks: ["one owner", "no burial of the living", "one request per lane"],
  },
  {
    name: "lease-by-store-clock",
    seed: 146,
    bug: "A lease has run out when its last renewal is long ago by the clock of Postgres.",
    async grow() {
      const { Heartbeats } = await import("../../dispatcher/shards/failure-detector.ts");
      replaceMethod(Heartbeats.prototype, "read", () => (rows) => {
        // Takes the latest renewal as the time of PostgreSQL.
        const nowMs = Math.max(...rows.map(({ renewedAt }) => renewedAt.getTime()));
        return rows.filter(({ renewedAt }) => renewedAt.getTime() < nowMs - 4_000);
      });
    },
    breaks: ["no burial of the living", "one owner"],
  },
  {
    name: "walked-dead",
    seed: 22,
    bug: "The renewal waits for a burial, which walks through all that the dead had to do.",
    async grow() {
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
    breaks: ["takeover", "no burial of the living", "no starvation"],
  },
  {
    name: "record-of-the-dead",
    seed: 6,
    bug: "Whoever ends a lease records what the dead may have sent, as if it had been.",
    async grow() {
      const { orphanShards } = await import("./leases.ts");
      const { queueOf } = await import("./log.ts");
      replaceFunction(orphanShards, (real) => (tables, id) => {
        const shards = real(tables, id);
        for (const one of tables.subscriptions.values()) {
          const [head] = queueOf(one);
          if (head === undefined || !shards.includes(one.shard)) continue;
          const { sequence, round, attempt } = head;
          const nextAttemptAtMs = null;
          const record = {
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
    name: "untold-repeat",
    seed: 22,
    bug: "The record of a possible repeat does not say that it is one.",
    async grow() {
      const { recordAttempt } = await import("../../dispatcher/delivery/compose.ts");
      replaceFunction(recordAttempt, (real) => (posted, outcome, decision) => {
        return real({ ...posted, possiblyRepeated: false }, outcome, decision);
      });
    },
    breaks: ["possible repeats told"],
  },
  {
    name: "unmarked-lanes",
    seed: 84,
    bug: "Only the lanes that the first load shows are taken for sent from by the dead.",
    async grow() {
      const { markInDoubt } = await import("../../dispatcher/actor/in-doubt.ts");
      replaceFunction(markInDoubt, (real) => (inDoubt, entry) => {
        if ((inDoubt.lanes?.size ?? 0) < 2) real(inDoubt, entry);
      });
    },
    breaks: ["possible repeats told"],
  },
  {
    name: "endless-inheritance",
    seed: 6,
    bug: "What comes long after a takeover is told as a possible repeat, too.",
    async grow() {
      const { markInDoubt } = await import("../../dispatcher/actor/in-doubt.ts");
      replaceFunction(
        markInDoubt,
        () =>
          ({ marked }, { sequence }) =>
            void marked.add(sequence),
      );
    },
    breaks: ["possible repeats told"],
  },
  {
    name: "forgotten-orphan",
    seed: 34,
    bug: "A claim clears what the burial has noted, and its answer is lost.",
    async grow() {
      const { claimOf } = await import("./leases.ts");
      replaceFunction(claimOf, (real) => (tables, shard) => {
        const claim = real(tables, shard);
        if (tables.owners[shard] !== null) tables.orphaned[shard] = false;
        return claim;
      });
    },
    breaks: ["possible repeats told"],
  },
  {
    name: "own-clock",
    seed: 18,
    bug: "The clock of the process says when a retry is due.",
    async grow() {
      const { PostgresClock } = await import("../../src/lib/postgres-clock.ts");
      replaceMethod(PostgresClock.prototype, "heard", () => () => {});
    },
    breaks: ["never early", "no starvation", "punctual", "no loss", "settings of the moment"],
  },
  {
    name: "unsafe-after-suspension",
    seed: 60,
    bug: "A process that was suspended goes by its monotonic clock alone, and sends before it looks at its lease.",
    async grow() {
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
