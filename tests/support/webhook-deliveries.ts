import { afterEach } from "bun:test";

import { systemClock } from "../../src/lib/clock.ts";
import { createTestSchedule, startDispatcher } from "./dispatch.ts";
import { fixture } from "./fixture.ts";
import { Receiver } from "./network/receiver.ts";
import { startWebhooks } from "./webhooks.ts";

/**
 * Gives a test file the API of `startWebhooks` with a schedule that dispatchers hear. Dispatchers and receivers that its
 * tests start here end after each test, the last one first.
 */
export function webhookDeliveries(options: Parameters<typeof startWebhooks>[0] = {}) {
  const stores = fixture(createTestSchedule);
  const world = fixture(() => startWebhooks({ ...options, schedule: stores.schedule }));
  const started: { stop(): unknown }[] = [];
  afterEach(async () => {
    for (const one of started.splice(0).toReversed()) await one.stop();
  });
  const ending = <T extends { stop(): unknown }>(one: T): T => {
    started.push(one);
    return one;
  };
  return {
    stores,
    world,
    /** Ends something after the test. */
    ending,
    /** Starts a dispatcher, and sets the clock of the API, which stands still, to the present time. */
    dispatcher(own: Partial<Parameters<typeof startDispatcher>[0]> = {}) {
      world.clock.set(systemClock.now());
      const { db } = world.database;
      const { box } = world.api.deps;
      return ending(startDispatcher({ db, box, schedule: stores.schedule, ...own }));
    },
    receiver: async (answer?: Receiver["answer"]) => ending(await Receiver.start(answer)),
  };
}
