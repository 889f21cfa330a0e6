import { describe } from "bun:test";

import { testSeeds } from "../../support/seeds.ts";

describe("the dispatcher under a virtual clock", () => {
  // `bun run simulate` runs more seeds; the nightly workflow runs 20,000.
  testSeeds({ seeds: 20, block: 20 });
});
