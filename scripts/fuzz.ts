// `bun run fuzz answers|requests [--inputs 1000000] [--seed 1]` sends mutated responses to the dispatcher's HTTP
// parser, or mutated requests to an API process with separate stores. It prints each failure with its seed.
import { exit } from "node:process";
import { parseArgs } from "node:util";

import { fuzzAnswers, type Broken } from "../tests/hostile/fuzz-answers.ts";
import { fuzzEdge } from "../tests/hostile/fuzz-edge.ts";

const USAGE = "Usage: bun run fuzz answers|requests [--inputs 1000000] [--seed 1]";
/** Time in ms after which an incomplete input is abandoned. It is short because there may be a million inputs. */
const LEAVE_MS = 100;
/** Exit status for wrong arguments (EX_USAGE of sysexits.h). */
const EXIT_USAGE = 64;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    inputs: { type: "string", default: "1000000" },
    seed: { type: "string", default: "1" },
  },
});
const asked = { inputs: Number(values.inputs), seed: Number(values.seed) };
const [what] = positionals;

if ((what !== "answers" && what !== "requests") || !Number.isInteger(asked.inputs + asked.seed)) {
  console.error(USAGE);
  exit(EXIT_USAGE);
}
const startedAt = performance.now();
const broken = what === "answers" ? fuzzAnswers(asked) : await fuzzRequests();
const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
if (broken === undefined)
  console.log(`${asked.inputs} ${what} from seed ${asked.seed} in ${seconds} s: no fault found.`);
else
  console.error(
    `Found from seed ${asked.seed}: that ${JSON.stringify(broken.input)} ${broken.promise}.`,
  );
exit(broken === undefined ? 0 : 1);

async function fuzzRequests(): Promise<Broken | undefined> {
  const { withRig } = await import("./bench/rig.ts");
  const env = { RATE_LIMITS: "off", LOG_LEVEL: "error" };
  return withRig({ env }, async (rig) => {
    await rig.start("api");
    const report = await fuzzEdge(rig.root, { ...asked, leaveMs: LEAVE_MS });
    console.table(report.statuses);
    return report.broken;
  });
}
