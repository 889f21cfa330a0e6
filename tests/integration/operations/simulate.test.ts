import { describe } from "bun:test";

import { testSeeds } from "../../support/seeds.ts";

describe("the dispatcher under a virtual clock", () => {
  // A quarter of a minute of one core, so that the whole suite stays below ten; `bun run simulate --seeds 10000` runs more.
  testSeeds({ seeds: 100, block: 50 });
});
