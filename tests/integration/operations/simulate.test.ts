import { describe } from "bun:test";

import { testSeeds } from "../../support/seeds.ts";

describe("the dispatcher under a virtual clock", () => {
  // Takes fifteen seconds of one core, so that the whole suite stays below ten minutes;
  // `bun run simulate --seeds 10000` runs more.
  testSeeds({ seeds: 100, block: 50 });
});
