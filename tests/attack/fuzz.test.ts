import { afterAll, expect, test } from "bun:test";

import { startAttackedApi } from "../support/processes/attacked-api.ts";
import { fuzzAnswers } from "../hostile/fuzz-answers.ts";
import { fuzzEdge } from "../hostile/fuzz-edge.ts";

/*
 * A small, repeatable part of `bun run fuzz`: the corpus, and then some thousand mutations from fixed seeds instead of a
 * million.
 */

const { api, stop } = await startAttackedApi();

test.each([1, 2, 3, 4])(
  "responses of receivers from seed %d break no guarantee of the parser",
  (seed) => {
    expect(fuzzAnswers({ inputs: ANSWERS, seed })).toBeUndefined();
  },
);

test("requests cause no 500, no crash and no logged error", async () => {
  const { sent, statuses, broken } = await fuzzEdge(api.root, {
    inputs: REQUESTS,
    seed: 1,
    leaveMs: LEAVE_MS,
  });
  expect(broken).toBeUndefined();
  expect(sent).toBe(REQUESTS);
  // Enough requests must pass Bun's parser, or the test would not reach our code.
  expect((statuses[401] ?? 0) + (statuses[422] ?? 0) + (statuses[404] ?? 0)).toBeGreaterThan(
    REQUESTS / 20,
  );
  expect(api.said).not.toContain("request.failed");
});

const ANSWERS = 10_000;

const REQUESTS = 1_500;

/** The time after which a request is abandoned; long enough for nearly every response on a loaded machine. */
const LEAVE_MS = 1_000;

afterAll(stop);
