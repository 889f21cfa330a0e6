import { expect, test } from "bun:test";

import { networkOf } from "../../../src/lib/network.ts";

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["2001:db8:1:2::1", "2001:db8:1:2"],
  ["2001:DB8:0001:0002:ffff::", "2001:db8:1:2"],
  ["2001:db8::5", "2001:db8:0:0"],
  ["::1", "0:0:0:0"],
  ["", ""],
])("the network of %j is %j", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
