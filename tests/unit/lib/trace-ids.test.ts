import { expect, test } from "bun:test";

import { readTraceparent, traceIdsOf } from "../../../src/lib/spans.ts";

test.each([
  ["00000000000000000000000001", "00000000000000000000000000000001", "0000000000000001"],
  ["7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "f".repeat(32), "f".repeat(16)],
  ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01563e3ab5d3d6764c61efb99302bd5b", "4c61efb99302bd5b"],
])("the trace of %s is the same 128 bits", (eventId, traceId, rootId) => {
  expect(traceIdsOf(eventId)).toEqual({ traceId, rootId });
});

test.each([
  ["", "nothing"],
  ["8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "more than 128 bits"],
  ["01ARZ3NDEKTSV4RRFFQ69G5FA", "too short"],
  ["01ARZ3NDEKTSV4RRFFQ69G5FAU", "a letter that none has"],
  ["01ARZ3NDEK0000000000000000", "a span id of zeros"],
])("%s has no trace: %s", (eventId) => {
  expect(traceIdsOf(eventId)).toBeUndefined();
});

test("reads a valid traceparent and rejects anything else", () => {
  const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
  expect(readTraceparent(`00-${traceId}-${spanId}-01`)).toEqual({ traceId, spanId, traceFlags: 1 });
  for (const bad of [
    null,
    "",
    `00-${traceId}-${spanId}`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
  ])
    expect(readTraceparent(bad)).toBeUndefined();
});
