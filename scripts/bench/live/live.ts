// `bun run bench live` measures the running product from outside; see `--help`.
import { watchForStop } from "../../install/stop-signal.ts";
import { bareLoops, meanOf } from "./bare.ts";
import { partD } from "./hanging.ts";
import { insertPast } from "./history.ts";
import { readOptions, USAGE, type Options } from "./options.ts";
import { partE, partF, partI } from "./reads.ts";
import { report, type LiveResult } from "./report.ts";
import { withLiveRig, type LiveRig } from "./rig.ts";
import { soak } from "./soak.ts";
import { partA, partB, partC, partH } from "./throughput.ts";
import { commitOf, writeResult } from "../rig.ts";

/** Exit status that shells use for a process that Ctrl-C has ended. */
const EXIT_STOPPED = 130;

async function live(wanted: Options): Promise<number> {
  const stop = watchForStop(() => process.exit(EXIT_STOPPED));
  const result = await withLiveRig(wanted, stop, (rig) => run(rig));
  // An interrupted run has no useful result.
  if (stop.aborted) return EXIT_STOPPED;
  report(result);
  const name = wanted.label === undefined ? "live" : `live-${wanted.label}`;
  writeResult(name, result);
  return 0;
}

async function run(rig: LiveRig): Promise<LiveResult> {
  const { options: wanted, stores, stop } = rig;
  const result: LiveResult = {
    tree: wanted.tree,
    commit: commitOf(wanted.tree),
    stores: stores.kind,
    rows: wanted.rows,
  };
  await insertPast(rig);
  if (wanted.soakMs !== undefined) {
    result.soak = await soak(rig, wanted.soakMs);
    return result;
  }
  const before = await bareLoops(rig);
  for (const part of wanted.parts) {
    if (stop.aborted) return result;
    Object.assign(result, { [part]: await PARTS[part](rig) });
  }
  result.bare = stop.aborted ? before : meanOf(before, await bareLoops(rig));
  return result;
}

const PARTS = { a: partA, h: partH, b: partB, c: partC, d: partD, e: partE, f: partF, i: partI };

const options = readOptions(process.argv.slice(2));
if (options === undefined) console.log(USAGE);
else process.exit(await live(options));
