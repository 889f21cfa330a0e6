import { describe, expect, test } from "bun:test";

import type { Tx } from "../../../db/client.ts";
import type { RecordedAction } from "../../../src/outbox/event.ts";
import { holdSequences, recordActions } from "../../../src/outbox/queries.ts";

describe("the sequences of partners", () => {
  const bound = ["server.boundLockWait", { ms: "1000" }];

  test.each([
    [
      "of one partner are waited for without a timeout of their own",
      [1],
      true,
      [["outbox.holdSequences", { partners: [1] }]],
    ],
    [
      "of several partners are waited for at most a second, because other writers wait meanwhile",
      [1, 2],
      true,
      [bound, ["outbox.holdSequences", { partners: [1, 2] }]],
    ],
    [
      "of several partners are locked as far as they are free",
      [1, 2],
      false,
      [["outbox.holdFreeSequences", { partners: [1, 2] }]],
    ],
  ])("%s", async (_, partners, waits, expected) => {
    const { ran, tx } = recordingTransaction(1);
    expect(await holdSequences(tx, partners, waits)).toEqual(new Set([1]));
    expect(ran).toEqual(expected);
  });
});

describe("actions", () => {
  const action: RecordedAction = {
    eventId: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
    event: "review_received",
    partnerId: 7,
    accountId: 2,
    storeId: 3,
    storeReviewSiteId: 11,
    reviewId: 42,
    actor: { type: "system", id: null, name: "google" },
    about: {
      review: {
        id: 42,
        external_review_id: "g-42",
        store_id: 3,
        review_site_id: 2,
        source_platform: "google",
        rate: 4,
        reviewer: null,
      },
    },
    metadata: {},
    occurredAt: new Date("2026-06-01T12:00:00Z"),
  };
  const site = {
    store: { id: 3 },
    review_site: {
      store_review_site_id: 11,
      review_site_id: 2,
      name: "Google",
      connection_status: "connected",
      disconnect_reason: null,
    },
    axis: "pull",
    error_code: null,
    reason: null,
  } as const;
  const now = new Date("2026-06-01T12:00:01Z");

  test("send no statement if there are none", async () => {
    const { ran, tx } = recordingTransaction(1);
    expect([await recordActions(tx, [], now), ran]).toEqual([[], []]);
  });

  test("are appended in order, with each partner once, and a connection event has its axis and no batch", async () => {
    const { ran, tx } = recordingTransaction(1);
    const connected = { ...action, event: "review_pull_connected", about: { site } } as const;
    await recordActions(tx, [action, connected], now);
    const given = [
      { ord: 0, event: action.event, inBatch: true, axis: null, ...action.about, site: null },
      { ord: 1, event: connected.event, inBatch: false, axis: "pull", review: null, site },
    ];
    expect(ran).toMatchObject([["outbox.append", { given, partners: [7], now }]]);
  });
});

/** A transaction that records its statements and reports this partner as locked by another transaction. */
function recordingTransaction(held: number) {
  const ran: unknown[][] = [];
  const run = async ({ name }: { name: string }, given: unknown) => {
    ran.push([name, given]);
    return name.startsWith("outbox.hold") ? [{ partnerId: held }] : [];
  };
  // The code under test uses only these methods of a transaction.
  return { ran, tx: { run, runLast: run } as unknown as Tx };
}
