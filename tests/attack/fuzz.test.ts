import { afterAll, expect, test } from "bun:test";

import { startAttackedApi } from "../support/processes/attacked-api.ts";
import { fuzzAnswers } from "../hostile/fuzz-answers.ts";
import { fuzzEdge } from "../hostile/fuzz-edge.ts";

/* A share of what `bun run fuzz` does with a million inputs, from seeds that stay the same. */

const SEEDS = [1, 2, 3, 4];
const ANSWERS = 10_000;
const REQUESTS = 1_500;
/** Long enough for every answer of a loaded machine, or nearly. */
const LEAVE_MS = 1_000;

const { api, stop } = await startAttackedApi();
afterAll(stop);

test.each(SEEDS)("receivers' answers from seed %d keep every promise of the parser", (seed) => {
  expect(fuzzAnswers({ inputs: ANSWERS, seed })).toBeUndefined();
});

test.each(SEEDS)(
  "requests from seed %d are no 500, no crash and no error of ours",
  async (seed) => {
    const { sent, statuses, broken } = await fuzzEdge(api.root, {
      inputs: REQUESTS,
      seed,
      leaveMs: LEAVE_MS,
    });
    expect(broken).toBeUndefined();
    expect(sent).toBe(REQUESTS);
    // Most of them have to get past Bun's parser, or nothing of ours was tried.
    expect((statuses[401] ?? 0) + (statuses[422] ?? 0) + (statuses[404] ?? 0)).toBeGreaterThan(
      REQUESTS / 20,
    );
    expect(api.said).not.toContain("request.failed");
  },
);
