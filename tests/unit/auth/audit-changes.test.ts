import { expect, test } from "bun:test";

import { changeDetails, changesOf } from "../../../src/audit/changes.ts";

const LONG = "x".repeat(201);
const many = (count: number) => Array.from({ length: count }, (_, n) => n);

test.each<[string, string, object, unknown]>([
  ["a text of 200 characters", "label", { label: LONG.slice(1) }, LONG.slice(1)],
  ["a text of 201 characters", "label", { label: LONG }, `${LONG.slice(1)}…`],
  ["a list of 20 items", "store_ids", { storeIds: many(20) }, many(20)],
  ["a list of 21 items", "store_ids", { storeIds: many(21) }, [...many(20), "1 more"]],
  [
    "a list of 21 items in a record",
    "new_users",
    { newUsers: { store_ids: many(21) } },
    { store_ids: [...many(20), "1 more"] },
  ],
  [
    "an address with user and query",
    "webhook_url",
    { webhookUrl: "https://user:word@a.test:8443/path?key=1#top" },
    "https://a.test:8443/path?…",
  ],
  [
    "an app's own address",
    "redirect_uris",
    { redirectUris: ["com.example.app://callback"] },
    ["com.example.app://callback"],
  ],
])("the new value of %s", (_, field, after, to) => {
  expect(changesOf([field], {}, after)[field]?.to).toEqual(to);
});

test("has only fields that differ, with the old and the new value, and no secret", () => {
  const url = "https://a.test/";
  const before = { label: "a", webhookUrl: url, events: ["x"], secret: "s", passwordHash: "h" };
  const after = { label: "b", webhookUrl: null, events: ["x"], secret: "t", passwordHash: "i" };
  expect(
    changesOf(["label", "webhook_url", "events", "secret", "password_hash"], before, after),
  ).toEqual({
    label: { from: "a", to: "b" },
    webhook_url: { from: url, to: null },
  });
});

test("names a secret that was sent as changed, and no field that stays", () => {
  const [before, after] = [
    { name: "a", label: "b" },
    { name: "a", label: "c" },
  ];
  expect(changeDetails(["name", "label", "client_secret"], before, after)).toEqual({
    fields: ["label", "client_secret"],
    changes: { label: { from: "b", to: "c" } },
  });
});
