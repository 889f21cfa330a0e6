import { expect, test } from "bun:test";

import { networkOf, networksOf } from "../../../src/lib/network.ts";

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

test.each([
  ["192.0.2.1", ["192.0.2.1"]],
  ["::ffff:192.0.2.1", ["192.0.2.1"]],
  ["", [""]],
  ["2001:db8:1::1", ["2001:db8:1::/48", "2001:db8:1:0::/56", "2001:db8:1:0"]],
  ["2001:db8:1:ff::1", ["2001:db8:1::/48", "2001:db8:1:0::/56", "2001:db8:1:ff"]],
  ["2001:db8:1:100::1", ["2001:db8:1::/48", "2001:db8:1:100::/56", "2001:db8:1:100"]],
  ["2001:db8:1:12ab::1", ["2001:db8:1::/48", "2001:db8:1:1200::/56", "2001:db8:1:12ab"]],
  ["2001:db8:1:ffff::1", ["2001:db8:1::/48", "2001:db8:1:ff00::/56", "2001:db8:1:ffff"]],
  ["2001:db8:2::1", ["2001:db8:2::/48", "2001:db8:2:0::/56", "2001:db8:2:0"]],
])("the networks around %j are %j", (address, networks) => {
  expect(networksOf(address)).toEqual(networks);
});
