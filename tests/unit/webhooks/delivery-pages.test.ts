import { expect, test } from "bun:test";

import type { Db } from "../../../db/client.ts";
import { createDeliveryList } from "../../../src/webhooks/actions/list-deliveries.ts";
import { readNumbers } from "../../../src/outbox/event-numbers.ts";
import type { DeliveryFilter } from "../../../src/webhooks/delivery-list-model.ts";
import type { Subscription } from "../../../src/webhooks/model.ts";

const FILTER = {} as DeliveryFilter;

test("4 pages are read at once and 2 of a partner, 200 wait, and one more is rejected", async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<{ rows: []; next: undefined }>();
  let running = 0;
  const transaction = () => {
    running += 1;
    return ended;
  };
  // The list uses the database only inside of the transaction, which does not run here.
  const db = { transaction } as unknown as Db;
  const listDeliveries = createDeliveryList({ db });
  const pages = (partnerId: number, count: number) =>
    Array.from({ length: count }, () =>
      listDeliveries({ partnerId } as Subscription, FILTER, {
        after: undefined,
        limit: 50,
      }),
    );
  const accepted = [...pages(1, 3)];
  expect(running).toBe(2);
  accepted.push(...pages(2, 3), ...pages(3, 1));
  expect(running).toBe(4);
  accepted.push(...pages(1, 197));
  const [newest] = accepted.slice(-1);
  expect(await pages(1, 1)[0]?.catch(({ code }) => code)).toBe("unavailable");
  // The newest of the partner with most pages gives its place to another partner's.
  const other = pages(4, 1);
  expect(await newest?.catch(({ code }) => code)).toBe("unavailable");
  end({ rows: [], next: undefined });
  await Promise.all([...accepted.slice(0, -1), ...other]);
  expect(running).toBe(204);
});

test.each([
  ["1", [1, 1]],
  ["17-25", [17, 25]],
  ["17-17", [17, 17]],
  ["17-516", [17, 516]],
  ["17-517", undefined],
  ["25-17", undefined],
  ["0", undefined],
  ["0-5", undefined],
  ["017", undefined],
  ["17-", undefined],
  ["-17", undefined],
  ["1-2-3", undefined],
  ["1.5", undefined],
  ["9007199254740991", [2 ** 53 - 1, 2 ** 53 - 1]],
  ["9007199254740992", undefined],
  ["9007199254740492-9007199254740991", [2 ** 53 - 500, 2 ** 53 - 1]],
  ["9007199254740991-9007199254740992", undefined],
  ["1,17-515", [1, 1, 17, 515]],
  ["1,17-516", undefined],
  ["1,", undefined],
  ["1,,2", undefined],
])("numbers of events are from 1 to 2^53-1, in ranges, at most 500 in all: %s", (text, ranges) => {
  const read = readNumbers(text);
  expect(read?.flatMap(({ first, last }) => [first, last])).toEqual(ranges);
});
