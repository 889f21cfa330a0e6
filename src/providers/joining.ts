import type { Clock } from "../lib/clock.ts";
import { inGroups } from "../lib/groups.ts";
import type { Asking } from "./admit.ts";
import { takeGroup, type Taken, type TakingDeps } from "./group.ts";
import { charsOf } from "./profanity.ts";

export const EVENTS_PER_GROUP = 256;
/** A few hundred reviews of a usual length, or six of the greatest: all of a group wait for its statements. */
export const CHARS_PER_GROUP = 131_072;

const LIMITS = {
  questions: 64,
  sizes: [
    { sizeOf: ({ read }: Asking) => read.references.length, atMost: EVENTS_PER_GROUP },
    { sizeOf: ({ read }: Asking) => charsOf(read.events), atMost: CHARS_PER_GROUP },
  ],
  waiting: 1_024,
  waitMs: 6_000,
};
/** A request of more events would keep the requests of other partners waiting. */
const MAX_EVENTS = 32;
/** How long a request alone is tried again that meets, each time, somebody else who writes what it writes. */
const AGAIN_MS = 2_000;

/**
 * Takes each request in a group of those that came at the same time, which waits for nobody. The requests of one partner
 * form groups of their own while somebody else holds its sequence, and so does a large one: those wait for it, and keep no
 * other partner waiting. A request that needs a row that somebody else holds, or whose group could not be written, is a
 * group of one, which waits for all that it needs.
 */
export function createTaking(deps: TakingDeps): (asking: Asking) => Promise<Taken> {
  const join = inGroups(deps.clock, (asked) => takeGroup(deps, asked, "nothing"), {
    ...LIMITS,
    gatherMs: 3,
  });
  const lines = createLines(deps.clock, (asked) => takeGroup(deps, asked, "sequences"));
  return async (asking) => {
    const partners = asking.partners.toSorted((a, b) => a - b).join();
    const isHeldUp = lines.has(partners) || deps.intake.isStuck(asking.partners);
    let taken: Taken = { kind: "left", because: "sequence" };
    if (!isHeldUp && !isLarge(asking)) taken = await join(asking);
    if (taken.kind === "left" && taken.because === "sequence")
      taken = await lines.join(partners, asking);
    const untilMs = deps.clock.monotonicMs() + AGAIN_MS;
    while (
      taken.kind === "left" &&
      taken.because !== "secret" &&
      deps.clock.monotonicMs() <= untilMs
    )
      [taken = taken] = await takeGroup(deps, [asking], "rows and sequences");
    return taken;
  };
}

function isLarge({ read }: Asking): boolean {
  return read.references.length > MAX_EVENTS || charsOf(read.events) > CHARS_PER_GROUP;
}

/** A line of groups for each key, one group at a time, for as long as somebody is in it. */
function createLines(clock: Clock, take: (asked: readonly Asking[]) => Promise<readonly Taken[]>) {
  const lines = new Map<string, { ask: (asking: Asking) => Promise<Taken>; asking: number }>();
  return {
    has: (key: string) => lines.has(key),
    async join(key: string, asking: Asking): Promise<Taken> {
      const line = lines.get(key) ?? { ask: inGroups(clock, take, LIMITS), asking: 0 };
      lines.set(key, line);
      line.asking++;
      try {
        return await line.ask(asking);
      } finally {
        line.asking--;
        if (line.asking === 0) lines.delete(key);
      }
    },
  };
}
