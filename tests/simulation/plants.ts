import { join } from "node:path";

/** A bug put in on purpose, to show that the simulation finds it. */
export interface Plant {
  readonly name: string;
  /** One that shows it; where the code has changed since, another one near it does. */
  readonly seed: number;
  readonly bug: string;
  /**
   * In the code of the dispatcher: this text of this file is another one when the module is loaded. Without it, the
   * bug is in the simulated stores, which look at the name.
   */
  readonly change?: { readonly file: string; readonly from: string; readonly to: string };
  /** The invariants that may find it: what it breaks, whichever of its consequences comes first. */
  readonly breaks: readonly string[];
}

export const PLANTS: readonly Plant[] = [
  {
    name: "dropped-fence",
    seed: 14,
    bug: "A commit does not look whether its dispatcher was declared dead.",
    breaks: ["fencing"],
  },
  {
    name: "late-release",
    seed: 1740,
    bug: "The release of a shard that comes late takes away what the same dispatcher has claimed again.",
    breaks: ["one owner", "one request per lane"],
  },
  {
    name: "endless-closing",
    seed: 499,
    bug: "A shard that is to go waits for whatever hangs in it, and so does all else in it.",
    change: {
      file: "shards/holdings.ts",
      from: "this.#listener.overdue(shard);",
      to: "void 0;",
    },
    breaks: ["no starvation"],
  },
  {
    name: "blamed-receiver",
    seed: 4,
    bug: "What did not get past our own proxy counts as a failure of the receiver.",
    change: {
      file: "delivery/sender.ts",
      from: 'if (outcome.kind === "unsent") return',
      to: 'if (outcome.kind === "unsent") Object.assign(outcome, { kind: "failed" }); if (false as boolean)',
    },
    breaks: ["no invented record"],
  },
  {
    name: "missing-sweep",
    seed: 1,
    bug: "The sweep finds nothing, so a lost wake is lost for good.",
    breaks: ["no starvation", "no loss"],
  },
  {
    name: "sequence-at-statement",
    seed: 9,
    bug: "Sequences are drawn by the statement and not in commit order: `sequence > last` skips what commits late.",
    breaks: ["order", "no loss", "no starvation"],
  },
  {
    name: "counter-outside",
    seed: 2,
    bug: "The failure counter is written after the transaction.",
    breaks: ["exact counter"],
  },
  {
    name: "batch-by-time",
    seed: 2,
    bug: "A batch takes the events recorded between two instants, not the rows that wait.",
    breaks: ["no loss", "batch"],
  },
  {
    name: "retry-from-start",
    seed: 1,
    bug: "The delay of a retry counts from the start of the failed attempt.",
    change: {
      file: "delivery/sender.ts",
      from: "{ attempt: entry.attempt, retryDelaysMs },\n      clock.now(),",
      to: "{ attempt: entry.attempt, retryDelaysMs },\n      startedAt,",
    },
    breaks: ["schedule"],
  },
  {
    name: "unbounded-ahead",
    seed: 2,
    bug: "An actor sends ahead of any number of commits.",
    change: { file: "actor/step.ts", from: " || lane.uncommitted >= SEND_AHEAD", to: "" },
    breaks: ["bounded send-ahead", "bounded repeats"],
  },
  {
    name: "ahead-of-failure",
    seed: 1,
    bug: "An actor sends the next entry before a failure is committed.",
    change: {
      file: "actor/step.ts",
      from: 'if (decision.kind !== "delivered") lane.halted = true;',
      to: "",
    },
    breaks: ["order"],
  },
  {
    name: "lost-wanted",
    seed: 805,
    bug: "A wake that comes during a load is dropped.",
    change: {
      file: "actor/step.ts",
      from: "actor.loading = false;\n  if (found",
      to: "actor.loading = false;\n  actor.wanted = false;\n  if (found",
    },
    breaks: ["prompt", "punctual", "no starvation", "no loss"],
  },
  {
    name: "early-takeover",
    seed: 2,
    bug: "A lease is taken over before it has run out.",
    change: { file: "shards/leases.ts", from: "LEASE_TTL_MS = 4_000", to: "LEASE_TTL_MS = 900" },
    breaks: ["one owner"],
  },
  {
    name: "unsafe-start",
    seed: 497,
    bug: "A process that stood still sends before it looks at its lease.",
    change: {
      file: "delivery/sender.ts",
      from: "if (!this.#deps.holdings.safe) {",
      to: "if (false as boolean) {",
    },
    breaks: ["one owner"],
  },
  {
    name: "stale-settings",
    seed: 40,
    bug: "What waited for its slot is sent with the settings of long ago.",
    change: {
      file: "delivery/sender.ts",
      from: "if (!isFresh(effect.readAt, startedAt))",
      to: "if (false as boolean)",
    },
    breaks: ["settings of the moment", "only to the active", "nothing after settled"],
  },
  {
    name: "stale-load",
    seed: 55,
    bug: "The answer to a load is used although the queues were thrown away since it began.",
    change: {
      file: "actor/step.ts",
      from: "if (request.generation !== actor.generation) {",
      to: "if (false as boolean) {",
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
    seed: 410,
    bug: "A load after the ordering changed shows what is under way again.",
    change: { file: "actor/load.ts", from: " || wouldRepeat(actor)", to: "" },
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
    seed: 16,
    bug: "A test event that was delivered during a load is sent again.",
    change: {
      file: "actor/step.ts",
      from: 'if (lane.kind === "test" && actor.loading) continue;',
      to: "",
    },
    breaks: ["nothing after settled", "no repeat"],
  },
  {
    name: "unseen-lane",
    seed: 25,
    bug: "What was written for a review while its lane was busy is not read.",
    change: { file: "actor/load.ts", from: "lane.unseen = true", to: "lane.unseen = false" },
    breaks: ["prompt", "punctual", "no starvation", "no loss"],
  },
  {
    name: "full-queue",
    seed: 2360,
    bug: "A wake that comes while the queue is full is forgotten when there is room again.",
    change: {
      file: "actor/load.ts",
      from: "if (actor.wanted && !hungry && !waits) actor.more = true;",
      to: "",
    },
    breaks: ["prompt", "punctual"],
  },
  {
    name: "crowded-out",
    seed: 2360,
    bug: "Slow reviews with a long queue keep the other reviews from being read.",
    change: { file: "actor/load.ts", from: " || free > 0)", to: ")" },
    breaks: ["prompt", "punctual"],
  },
  {
    name: "unplanned-wait",
    seed: 131,
    bug: "An actor that is busy in one lane plans nothing for a retry in another.",
    change: {
      file: "actor/step.ts",
      from: "  planWake(actor, now, effects);\n",
      to: "  if (isIdle(actor)) planWake(actor, now, effects);\n",
    },
    breaks: ["punctual", "prompt"],
  },
  {
    name: "ghost-actor",
    seed: 75,
    bug: "An actor that was dropped still hears of the timer that it had set, and goes on beside its successor.",
    change: {
      file: "dispatcher.ts",
      from: " && this.#actors.get(actor.id) === actor",
      to: "",
    },
    breaks: ["no repeat", "one request per lane", "nothing after settled"],
  },
];

const DISPATCHER = join(import.meta.dir, "../../dispatcher");

export function findPlant(name: string): Plant {
  const plant = PLANTS.find((one) => one.name === name);
  if (plant !== undefined) return plant;
  const names = PLANTS.map((one) => one.name).join(", ");
  throw new Error(`There is no plant ${name}, but ${names}.`);
}

/** Has to come before anything of the dispatcher is imported. */
export async function install({ name, change }: Plant): Promise<void> {
  if (change === undefined) return;
  const path = join(DISPATCHER, change.file);
  const source = await Bun.file(path).text();
  // A plant that no longer grows anywhere would prove nothing.
  if (source.split(change.from).length !== 2)
    throw new Error(`${name}: ${change.file} should hold exactly once: ${change.from}`);
  Bun.plugin({
    name,
    setup(build) {
      build.onLoad({ filter: new RegExp(`/dispatcher/${change.file}$`) }, () => ({
        contents: source.replace(change.from, () => change.to),
        loader: "ts",
      }));
    },
  });
}
