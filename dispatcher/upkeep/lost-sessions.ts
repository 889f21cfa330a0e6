import type { Db } from "../../db/client.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import { endLostSessions } from "./sessions-queries.ts";

/** As long as a transaction of ours may be left alone (`idleMs` in db/limits.ts). */
const LOST_AFTER_S = 10;
const LOOK_MS = 5_000;

interface LostSessionsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}

/** Every dispatcher looks, so that one is enough. */
export async function watchSessions(
  { db, clock, log }: LostSessionsDeps,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    try {
      for (const lost of await endLostSessions(db, LOST_AFTER_S))
        log.warn("session.lost", { ...lost });
    } catch (error) {
      log.warn("sessions.unseen", errorFields(error));
    }
    await clock.sleep(LOOK_MS, stop);
  }
}
