import type { Plant } from "./plant.ts";
import { drawInstead, replaceFunction } from "./replace.ts";

/** Bugs of the log: of its offset, of the rows of what it passes, and of the loads that read both. */
export const PLANTS_IN_LOG: readonly Plant[] = [
  {
    name: "rowless-pass",
    seed: 1,
    bug: "The offset moves past an event that is not settled and gives it no row.",
    async grow() {
      const { passEvents } = await import("./log.ts");
      replaceFunction(passEvents, () => () => {});
    },
    breaks: ["one place", "no outcome in vain", "no invented delivery"],
  },
  {
    name: "forgotten-retry",
    seed: 2,
    bug: "An event of the log that waits for a retry gets no row.",
    async grow() {
      const { writeRetry } = await import("./log.ts");
      replaceFunction(writeRetry, () => () => {});
    },
    breaks: ["one place", "order"],
  },
  {
    name: "doubled-entry",
    seed: 1,
    bug: "A load gives events of the log rows and leaves the offset before them.",
    async grow() {
      const { passEvents, passLogged } = await import("./log.ts");
      replaceFunction(passLogged, () => (target) => passEvents(target, target.settledThrough + 1));
    },
    breaks: ["one place", "committed in order", "no repeat", "nothing after settled", "order"],
  },
  {
    name: "unmoved-skip",
    seed: 16,
    bug: "A skip leaves the offset where it is.",
    async grow() {
      const { moveBySkip } = await import("./log.ts");
      replaceFunction(moveBySkip, () => () => {});
    },
    breaks: ["one place", "nothing after settled", "no loss"],
  },
  {
    name: "early-load",
    seed: 1,
    bug: "A load begins with the last event that the offset has passed.",
    async grow() {
      const { logBegin } = await import("./log.ts");
      replaceFunction(logBegin, (real) => (target, after) => real(target, after) - 1);
    },
    breaks: ["no repeat", "nothing after settled", "one request per lane", "order"],
  },
  {
    name: "offset-twice",
    seed: 1,
    bug: "The record of an event that the offset has passed moves it again.",
    async grow() {
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
    bug: "What the offset passes before it was sent is taken for failed once.",
    async grow() {
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
    name: "rows-ahead",
    seed: 200,
    bug: "A load shows rows that stand behind the window of the log it has looked through.",
    async grow() {
      // Runs of one review that waits for a retry, longer than one load passes, and redeliveries of another behind them.
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
