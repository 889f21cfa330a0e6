import { expect, test } from "bun:test";

import type { Tx } from "../../../db/client.ts";
import { holdSequences } from "../../../src/outbox/queries.ts";

test.each([
  ["of one partner is waited for without a timeout of its own", [1], []],
  [
    "of several partners is waited for at most a second, because others wait meanwhile",
    [1, 2],
    [1],
  ],
])("a lock of the sequences %s", async (_, partners, seconds) => {
  const ran: (readonly [name: string, given: object])[] = [];
  const run = async ({ name }: { name: string }, given: object) => (ran.push([name, given]), []);
  // The code under test uses only this method of a transaction.
  await holdSequences({ run } as unknown as Tx, partners, true);
  expect(ran).toEqual([
    ...seconds.map((s) => ["server.boundLockWait", { ms: String(1_000 * s) }] as const),
    ["outbox.holdSequences", { partners }],
  ]);
});
