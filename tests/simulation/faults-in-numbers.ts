import { drawInstead, type InjectedFault, replaceFunction } from "./replace.ts";

/** Bugs in the sequence headers (contract 7.19). */
export const FAULTS_IN_NUMBERS: readonly InjectedFault[] = [
  {
    name: "counted-tests",
    seed: 1,
    bug: "Tests and later rounds have numbers of events, too.",
    async inject() {
      const { countUnlogged } = await import("./numbers.ts");
      replaceFunction(countUnlogged, () => () => {});
    },
    breaks: ["numbers without gaps"],
  },
  {
    name: "numbers-from-zero",
    seed: 1,
    bug: "The events after a test are numbered from 1 again.",
    async inject() {
      const { countUnlogged } = await import("./numbers.ts");
      replaceFunction(countUnlogged, (real) => (target) => {
        if (target.lastSequence > target.lastLogged) target.unlogged = target.lastSequence;
        else real(target);
      });
    },
    breaks: ["numbers without gaps"],
  },
  {
    name: "limit-too-high",
    seed: 1,
    bug: "The first event that is not settled counts as settled.",
    async inject() {
      const { settledLimit } = await import("./numbers.ts");
      replaceFunction(
        settledLimit,
        (real) => (target) => real(target) + (target.ordering === "review" ? 1 : 0),
      );
    },
    breaks: ["settled is settled"],
  },
  {
    name: "settled-by-offset",
    seed: 1,
    bug: "Every event up to the offset of the log counts as settled, although it waits for a retry.",
    async inject() {
      const { firstUnsettled } = await import("./numbers.ts");
      replaceFunction(
        firstUnsettled,
        () =>
          ({ log, settledThrough }) =>
            log.find(({ sequence }) => sequence > settledThrough),
      );
    },
    breaks: ["settled is settled"],
  },
  {
    name: "stale-after-skip",
    seed: 1,
    bug: "Rows that a skip has settled count as queued.",
    async inject() {
      // Makes skips of rows: events that wait for a retry in runs with lanes by review.
      await drawInstead(() => ({ badReceivers: 0.8 }));
      const { firstUnsettled } = await import("./numbers.ts");
      replaceFunction(firstUnsettled, (real) => (target) => real({ ...target, skippedThrough: 0 }));
    },
    breaks: ["what was missed"],
  },
  {
    name: "untold-number",
    seed: 1,
    bug: "What is settled ends one event too early.",
    async inject() {
      const { settledLimit } = await import("./numbers.ts");
      replaceFunction(settledLimit, (real) => (target) => Math.max(0, real(target) - 1));
    },
    breaks: ["what was missed", "all before is settled"],
  },
  {
    name: "settled-by-place",
    seed: 1,
    bug: "With lanes by review, all events before one in the queue count as settled.",
    async inject() {
      const { composeRequest } = await import("../../dispatcher/delivery/compose.ts");
      replaceFunction(
        composeRequest,
        (real) => (entry, facts, subscription, deliveredAt) =>
          real(
            entry,
            facts,
            {
              ...subscription,
              ordering: "subscription",
              settledLimit: subscription.settledLimit && Number.MAX_SAFE_INTEGER,
            },
            deliveredAt,
          ),
      );
    },
    breaks: ["settled is settled"],
  },
  {
    name: "round-as-first",
    seed: 1,
    bug: "A later round tells every event that was ever recorded.",
    async inject() {
      const { settledBefore } = await import("./numbers.ts");
      replaceFunction(
        settledBefore,
        (real) => (target, entry) =>
          entry.round === 1 ? real(target, entry) : target.lastLogged - target.unlogged,
      );
    },
    breaks: ["settled is settled", "all before is settled"],
  },
  {
    name: "numbered-test",
    seed: 1,
    bug: "Tests have the number of the last event.",
    async inject() {
      const { numberOf } = await import("./numbers.ts");
      replaceFunction(
        numberOf,
        (real) => (target, entry) => real(target, entry) ?? target.lastLogged - target.unlogged,
      );
    },
    breaks: ["sequence headers as asked"],
  },
];
