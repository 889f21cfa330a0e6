import { REFUSED } from "./network.ts";
import { type InjectedFault, replaceFunction } from "./replace.ts";

/** Bugs in the group commit of records. */
export const FAULTS_IN_COMMITS: readonly InjectedFault[] = [
  {
    name: "unsplit-wait",
    seed: 76,
    bug: "A commit that waits for a row of one subscription is not split, so all of it waits.",
    async inject() {
      const { halvesOf } = await import("../../dispatcher/store/group-runner.ts");
      replaceFunction(halvesOf, () => (group) => [[...group], []]);
    },
    breaks: ["prompt", "punctual", "no starvation", "no loss", "committed in order"],
  },
  {
    name: "lossy-split",
    seed: 68,
    bug: "A record is lost when its group is split.",
    async inject() {
      const { halvesOf } = await import("../../dispatcher/store/group-runner.ts");
      replaceFunction(halvesOf, (real) => (group, keyOf) => {
        const [first, second] = real(group, keyOf);
        return [first, second.slice(1)];
      });
    },
    breaks: ["committed in order", "prompt", "punctual", "no starvation", "no loss"],
  },
  {
    name: "overtaking-split",
    seed: 5,
    bug: "The next records of a subscription do not wait for its quarantined ones.",
    async inject() {
      const { joinPending } = await import("../../dispatcher/store/group-runner.ts");
      replaceFunction(joinPending, () => () => false);
    },
    breaks: ["committed in order", "no repeat", "order", "no starvation", "no loss"],
  },
  {
    name: "skipped-poison",
    seed: 7,
    bug: "A record that PostgreSQL rejects is dropped as if it were committed.",
    async inject() {
      const { createStore } = await import("./dispatch-store.ts");
      replaceFunction(createStore, (real) => (deps, process) => {
        const store = real(deps, process);
        return {
          ...store,
          async commit(id, records) {
            try {
              return await store.commit(id, records);
            } catch (error) {
              const isAlone = new Set(records.map((one) => one.subscriptionId)).size === 1;
              const isRefused = error instanceof Error && Reflect.get(error, "code") === REFUSED;
              if (isAlone && isRefused) return { fenced: false, inactive: [], disabled: [] };
              throw error;
            }
          },
        };
      });
    },
    breaks: [
      "committed in order",
      "no repeat",
      "order",
      "bounded send-ahead",
      "no starvation",
      "possible repeats flagged",
    ],
  },
];
