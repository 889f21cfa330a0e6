import { expect, test } from "bun:test";

import { createSecretBox } from "../../../src/lib/secrets.ts";
import { deliveries } from "../../support/deliveries.ts";
import { until } from "../../support/network/receiver.ts";
import { insertSubscription, insertTenant } from "../../support/outbox.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";

const { database, stores, ending, receiver, emit } = deliveries();

test("a POST that a killed dispatcher had sent is repeated with the same attempt number, and recorded as possibly repeated", async () => {
  const key = crypto.getRandomValues(new Uint8Array(32));
  const dispatcher = ending(
    new DispatcherProcess({
      DATABASE_URL: database.url,
      REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
      REDIS_PREFIX: stores.prefix,
      MASTER_KEY: Buffer.from(key).toString("base64"),
    }),
  );
  const target = await receiver((_, count) => (count === 0 ? "hang" : 200));
  const tenant = await insertTenant(database.db);
  const { subscriptionId } = await insertSubscription(
    { db: database.db, box: createSecretBox({ current: key }) },
    { partnerId: tenant.partnerId, url: target.url },
  );
  dispatcher.start();
  const [sent = "", waiting = ""] = await emit({ tenant }, 2);
  await until("the request that hangs", () => target.received.length === 1);
  await dispatcher.kill();
  dispatcher.start();
  await until("both delivered", () => new Set(target.eventIds).size === 2);
  expect(target.eventIds).toEqual([sent, sent, waiting]);
  expect(target.received.map(({ headers }) => headers["x-svc-attempt"])).toEqual(["1", "1", "1"]);
  const attempts = async () => {
    const rows = await database.db.sql<
      { event_id: string; outcome: string; possibly_repeated: boolean }[]
    >`
      select event_id, outcome, possibly_repeated from delivery_attempts
       where subscription_id = ${subscriptionId} order by id`;
    return rows.map((row) => [row.event_id, row.outcome, row.possibly_repeated]);
  };
  // The second event counts as possibly repeated too: the new dispatcher cannot know how far the killed one came.
  const [later = ""] = await emit({ tenant });
  await until("the records", async () => (await attempts()).length === 3);
  expect(await attempts()).toEqual([
    [sent, "delivered", true],
    [waiting, "delivered", true],
    [later, "delivered", false],
  ]);
});
