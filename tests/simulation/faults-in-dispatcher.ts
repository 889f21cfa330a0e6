import { UNREADABLE } from "./network.ts";
import { drawInstead, type InjectedFault, replaceFunction, replaceMethod } from "./replace.ts";

/** Bugs in the dispatcher. */
export const FAULTS_IN_DISPATCHER: readonly InjectedFault[] = [
  {
    name: "endless-closing",
    seed: 1380,
    bug: "A surplus shard waits for a hanging request without a limit, and so does all its other work.",
    async inject() {
      const { Sender } = await import("../../dispatcher/delivery/sender.ts");
      replaceMethod(
        Sender.prototype,
        "abort",
        (real) =>
          function (this: InstanceType<typeof Sender>, shard) {
            if (shard === undefined) real.call(this);
          },
      );
    },
    breaks: ["no starvation"],
  },
  {
    name: "hidden-failures",
    seed: 113,
    bug: "Receivers that cannot be reached are taken for an outage of our own, although others are reached.",
    async inject() {
      await drawInstead(() => ({ partners: 8, badReceivers: 0.5 }));
      const { isOurs } = await import("../../dispatcher/delivery/reach.ts");
      replaceFunction(isOurs, (real) => (part, seen) => real(part, { ...seen, isProved: false }));
    },
    breaks: ["a failure of the receiver counts"],
  },
  {
    name: "counted-outage",
    seed: 13,
    bug: "Attempts count while our own network is lost.",
    async inject() {
      const { isOurs } = await import("../../dispatcher/delivery/reach.ts");
      replaceFunction(isOurs, (real) => (part, seen) => part !== "network" && real(part, seen));
    },
    breaks: ["nothing counts in an outage of ours"],
  },
  {
    name: "counted-after-outage",
    seed: 241,
    bug: "An attempt counts that began in an outage of ours and failed after its end.",
    async inject() {
      const { isOurs } = await import("../../dispatcher/delivery/reach.ts");
      replaceFunction(
        isOurs,
        (real) => (part, seen) => real(part, { ...seen, beganInOutage: false }),
      );
    },
    breaks: ["nothing counts in an outage of ours"],
  },
  {
    name: "retry-from-start",
    seed: 2,
    bug: "The delay of a retry counts from the start of the failed attempt.",
    async inject() {
      const { recordAttempt } = await import("../../dispatcher/delivery/compose.ts");
      replaceFunction(recordAttempt, (real) => (posted, outcome, decision) => {
        if (decision.kind !== "retry") return real(posted, outcome, decision);
        const delayMs = decision.delayMs - outcome.durationMs;
        return real(posted, outcome, { ...decision, delayMs });
      });
    },
    breaks: ["schedule"],
  },
  {
    name: "unbounded-ahead",
    seed: 2,
    bug: "An actor sends ahead of any number of commits.",
    async inject() {
      const { isBlocked } = await import("../../dispatcher/actor/lane.ts");
      replaceFunction(isBlocked, () => (lane) => lane.sending || lane.halted);
    },
    breaks: ["bounded send-ahead", "bounded repeats"],
  },
  {
    name: "uncounted-bytes",
    seed: 16,
    bug: "A load brings as many entries as it asks for, however large they are.",
    async inject() {
      await drawInstead(() => ({ eventBytes: [70_000], eventsPerWrite: 8 }));
      const { loadRequest } = await import("../../dispatcher/actor/load.ts");
      replaceFunction(loadRequest, (real) => (actor, limit) => {
        return { ...real(actor, limit), maxBytes: Number.MAX_SAFE_INTEGER };
      });
      // The loader limits a load as well, to its share of what is left.
      const { Actors } = await import("../../dispatcher/actors.ts");
      Object.defineProperty(Actors.prototype, "bytesToReadAhead", { get: () => Infinity });
    },
    breaks: ["bounded bytes"],
  },
  {
    name: "unbounded-lanes",
    seed: 188,
    bug: "An actor with a lane per review sends from any number of lanes while no commit succeeds.",
    async inject() {
      const { countUnrecorded } = await import("../../dispatcher/actor/lane.ts");
      replaceFunction(countUnrecorded, () => () => 0);
    },
    breaks: ["bounded attempts without a record"],
  },
  {
    name: "unbounded-failures",
    seed: 16,
    bug: "An actor with a lane per review sends as many deliveries before the 20th failure as at any other time.",
    async inject() {
      const { roomForFailures } = await import("../../dispatcher/actor/state.ts");
      replaceFunction(roomForFailures, () => () => Number.POSITIVE_INFINITY);
    },
    breaks: ["20 failures"],
  },
  {
    name: "unsplit-load",
    seed: 2,
    bug: "A load that fails for one subscription is retried as the same group for ever.",
    async inject() {
      await drawInstead((noFaults) => ({ partners: 8, faults: { ...noFaults, unreadable: 0.2 } }));
      const { failureOf } = await import("../../dispatcher/store/group-runner.ts");
      replaceFunction(failureOf, (real) => (error) => {
        const isUnreadable = error instanceof Error && Reflect.get(error, "code") === UNREADABLE;
        return isUnreadable ? "store" : real(error);
      });
    },
    breaks: ["prompt", "punctual", "no starvation", "possible repeats flagged"],
  },
  {
    name: "ahead-of-failure",
    seed: 6,
    bug: "An actor sends the next entry before a failure is committed.",
    async inject() {
      const { applyDecision } = await import("../../dispatcher/actor/lane.ts");
      replaceFunction(applyDecision, (real) => (lane, decision, now) => {
        real(lane, decision, now);
        lane.halted = false;
      });
    },
    breaks: ["order"],
  },
  {
    name: "lost-wanted",
    seed: 1388,
    bug: "A wake that comes during a load is dropped.",
    async inject() {
      const { step } = await import("../../dispatcher/actor/step.ts");
      replaceFunction(step, (real) => (actor, event, now) => {
        if (event.kind === "loaded") actor.wanted = false;
        return real(actor, event, now);
      });
    },
    breaks: ["possible repeats flagged", "prompt", "punctual", "no starvation", "no loss"],
  },
  {
    name: "unread-erasure",
    seed: 14,
    bug: "An actor keeps its queue, although its settings are from after an erasure.",
    async inject() {
      const { step } = await import("../../dispatcher/actor/step.ts");
      replaceFunction(step, (real) => (actor, event, now) => {
        if (event.kind === "loaded" && event.loaded.found && actor.subscription)
          actor.subscription = {
            ...actor.subscription,
            erasures: event.loaded.found.subscription.erasures,
          };
        return real(actor, event, now);
      });
    },
    breaks: ["no body of the erased", "no response of the erased"],
  },
  {
    name: "unsafe-start",
    seed: 648,
    bug: "A process that stood still sends before it checks its lease.",
    async inject() {
      const { obstacleTo } = await import("../../dispatcher/delivery/sender.ts");
      replaceFunction(obstacleTo, (real) => (send, actor, { now }) => {
        return real(send, actor, { isSafe: true, now });
      });
    },
    breaks: ["nothing after settled", "one owner", "one request per lane"],
  },
  {
    name: "slow-look-up",
    seed: 46,
    bug: "The lease is checked before the look-up of the host, and not when the first byte leaves.",
    async inject() {
      const { mayLeave } = await import("../../dispatcher/delivery/sender.ts");
      replaceFunction(mayLeave, () => () => true);
    },
    breaks: ["one owner"],
  },
  {
    name: "stale-settings",
    seed: 103,
    bug: "A send that waited for its slot uses the settings of long ago.",
    async inject() {
      const { obstacleTo } = await import("../../dispatcher/delivery/sender.ts");
      replaceFunction(obstacleTo, (real) => (send, actor, at) => {
        const obstacle = real(send, actor, at);
        return obstacle === "stale" ? undefined : obstacle;
      });
    },
    breaks: ["settings of the moment", "only to the active", "nothing after settled"],
  },
  {
    name: "stale-load",
    seed: 190,
    bug: "The result of a load is used although the queues were discarded since it began.",
    async inject() {
      const { isOutdated } = await import("../../dispatcher/actor/load.ts");
      replaceFunction(isOutdated, () => () => false);
    },
    breaks: [
      "order",
      "one request per lane",
      "no repeat",
      "nothing after settled",
      "bounded memory",
    ],
  },
  {
    name: "repeating-load",
    seed: 587,
    bug: "A load after a change of the ordering shows entries that are under way.",
    async inject() {
      const { decideLoad } = await import("../../dispatcher/actor/load.ts");
      replaceFunction(decideLoad, (real) => (state) => real({ ...state, repeats: false }));
    },
    breaks: [
      "one request per lane",
      "no repeat",
      "nothing after settled",
      "right attempt",
      "order",
    ],
  },
  {
    name: "forgotten-test",
    seed: 7,
    bug: "A test event that was delivered during a load is sent again.",
    async inject() {
      const { hasWork } = await import("../../dispatcher/actor/lane.ts");
      const { step } = await import("../../dispatcher/actor/step.ts");
      replaceFunction(step, (real) => (actor, event, now) => {
        const effects = real(actor, event, now);
        for (const [name, lane] of actor.lanes)
          if (lane.kind === "test" && !hasWork(lane) && lane.waitingUntil === undefined)
            actor.lanes.delete(name);
        return effects;
      });
    },
    breaks: ["nothing after settled", "no repeat", "right attempt"],
  },
  {
    name: "unseen-lane",
    seed: 49,
    bug: "Entries that were written for a review while its lane was busy are not read.",
    async inject() {
      const { planLoad } = await import("../../dispatcher/actor/load.ts");
      replaceFunction(planLoad, (real) => (actor, now, effects) => {
        real(actor, now, effects);
        for (const lane of actor.lanes.values()) lane.unseen = false;
      });
    },
    breaks: ["prompt", "punctual", "no starvation", "no loss"],
  },
  {
    name: "unplanned-wait",
    seed: 78,
    bug: "An actor that is busy in one lane plans no wake for a retry in another.",
    async inject() {
      const { step } = await import("../../dispatcher/actor/step.ts");
      replaceFunction(step, (real) => (actor, event, now) => {
        const effects = real(actor, event, now);
        const isSleep = ({ kind }: { kind: string }) => kind === "sleep";
        if (effects.some(({ kind }) => kind === "drop") || !effects.some(isSleep)) return effects;
        actor.plannedFor = undefined;
        return effects.filter((effect) => !isSleep(effect));
      });
    },
    breaks: ["possible repeats flagged", "punctual", "prompt"],
  },
];
