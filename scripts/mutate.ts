// Mutation testing: `bun run mutate [area …]`. StrykerJS changes one operator, condition or literal at a time and runs
// the tests of that area. A mutant survives if no test fails, which means that a real bug could remain unnoticed there.
import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { ROOT, ensureInstalled } from "./install/install.ts";

interface Area {
  readonly mutate: readonly string[];
  /** Unit tests, which take a tenth of a second. */
  readonly tests: readonly string[];
  /** Tests on PostgreSQL and Redis, which take seconds. They run only for mutants that pass the unit tests. */
  readonly flows?: readonly string[];
  /** The number of simulation seeds. They run only for mutants that pass the tests. */
  readonly seeds?: number;
}

const AREAS: Readonly<Record<string, Area>> = {
  actor: {
    mutate: ["dispatcher/actor/*.ts"],
    tests: ["tests/unit/dispatcher/actor"],
    seeds: 3,
  },
  rules: {
    mutate: [
      "dispatcher/{alerts,mail}/decide.ts",
      "src/{auth,oauth,sso,webhooks}/decide.ts",
      "src/webhooks/header-rules.ts",
      "src/auth/access/{authority,guard}.ts",
    ],
    tests: [
      "tests/unit/auth",
      "tests/unit/oauth",
      "tests/unit/sso",
      "tests/unit/webhooks",
      "tests/unit/dispatcher/alerts",
      "tests/unit/dispatcher/mail",
    ],
  },
  request: {
    mutate: ["dispatcher/delivery/{deliver,slots}.ts", "dispatcher/http/message.ts"],
    tests: ["tests/unit/dispatcher/delivery", "tests/unit/dispatcher/http"],
  },
  queues: {
    mutate: [
      "src/lib/{batches,fair-queue,network}.ts",
      "dispatcher/store/{committer,group-runner}.ts",
    ],
    tests: [
      "tests/unit/lib/fair-queue.test.ts",
      "tests/unit/lib/batches.test.ts",
      "tests/unit/lib/network.test.ts",
      "tests/unit/dispatcher/store/committer.test.ts",
      "tests/unit/dispatcher/store/group-runner.test.ts",
    ],
  },
  shards: {
    mutate: ["dispatcher/shards/*.ts"],
    tests: ["tests/unit/dispatcher/shards"],
    flows: ["tests/integration/dispatcher/leases.test.ts"],
    seeds: 3,
  },
  store: {
    mutate: ["dispatcher/store/*.ts"],
    tests: ["tests/unit/dispatcher/store"],
    flows: [
      "tests/conformance/cases.test.ts",
      "tests/conformance/twentieth-failure.test.ts",
      "tests/integration/db/statements.test.ts",
      "tests/integration/dispatcher/dispatch.test.ts",
      "tests/integration/dispatcher/batch.test.ts",
      "tests/integration/dispatcher/missing-history.test.ts",
      "tests/integration/dispatcher/overtaken.test.ts",
      "tests/integration/dispatcher/skipped-records.test.ts",
      "tests/integration/webhooks/batch-skip.test.ts",
      "tests/integration/delivery/attempt-requests.test.ts",
    ],
  },
  outbox: {
    mutate: ["src/outbox/{payload-format,event,queries,schedule,writer-pool}.ts"],
    tests: ["tests/unit/outbox"],
    flows: [
      "tests/integration/dispatcher/schedule.test.ts",
      "tests/integration/dispatcher/redis-faults.test.ts",
      "tests/integration/db/statements.test.ts",
      "tests/conformance/cases.test.ts",
      "tests/integration/reviews/providers.test.ts",
    ],
  },
  intake: {
    mutate: [
      "src/intake/{account-actions,account-rules,admit,change,decide,group-commit,inbox,new-reviews,notices}.ts",
      "src/intake/{provider-actions,provider-input,service-input,state,write}.ts",
    ],
    tests: ["tests/unit/intake"],
    flows: [
      "tests/integration/reviews/account.test.ts",
      "tests/integration/reviews/every-path.test.ts",
      "tests/integration/reviews/grouped-intake.test.ts",
      "tests/integration/reviews/notices.test.ts",
      "tests/integration/reviews/providers.test.ts",
      "tests/integration/services",
    ],
  },
  auth: {
    mutate: ["src/auth/**/*.ts"],
    tests: ["tests/unit/auth"],
    flows: [
      "tests/integration/http/openapi.test.ts",
      "tests/integration/auth",
      "tests/integration/oauth/token.test.ts",
      "tests/attack/authority.test.ts",
    ],
  },
  webhooks: {
    mutate: ["src/webhooks/**/*.ts"],
    tests: ["tests/unit/webhooks"],
    flows: [
      "tests/integration/http/openapi.test.ts",
      "tests/integration/webhooks",
      "tests/integration/delivery",
      "tests/attack/tenants.test.ts",
    ],
  },
};

/** Time limit in ms of one test, because a mutant may wait for something that never happens. */
const HANGING_MS = 20_000;
/**
 * Time in ms that a mutant may take in addition to one and a half times the normal run, because the machine may be
 * busy.
 */
const LOADED_MS = 30_000;
/** Number of lines of one block in `--sample`. Blocks keep neighbouring mutants together in a sample. */
const BLOCK = 10;

const USAGE = `bun run mutate [area …] [--sample N]
  Areas: ${Object.keys(AREAS).join(", ")}; without one, all.
  With --sample, only every Nth block of ${BLOCK} lines is mutated.
  In areas with flows, such as "intake", a mutant that the unit tests miss runs against the stores, for some seconds.`;

const FOLDER = ".cache/mutate";

interface Score {
  readonly mutants: number;
  readonly killed: number;
  readonly survived: number;
}

async function main(): Promise<number> {
  const { positionals: names, values } = parseArgs({
    allowPositionals: true,
    options: {
      sample: { type: "string", default: "1" },
      help: { type: "boolean", default: false },
    },
  });
  const unknown = names.filter((name) => !Object.hasOwn(AREAS, name));
  const sample = Number(values.sample);
  if (values.help || unknown.length > 0 || !(Number.isInteger(sample) && sample > 0)) {
    console.log(
      values.help
        ? USAGE
        : `Unknown area or sample: ${[...unknown, values.sample].join(", ")}\n${USAGE}`,
    );
    return values.help ? 0 : 64;
  }
  await ensureInstalled("all");
  const { withTestStores } = await import("./demo/stores/test-stores.ts");
  const chosen = Object.entries(AREAS).filter(
    ([name]) => names.length === 0 || names.includes(name),
  );
  const scores: [string, Score][] = [];
  for (const [name, area] of chosen) {
    for (const path of [...area.tests, ...(area.flows ?? [])]) filesOf(path);
    const run = (environment: NodeJS.ProcessEnv) =>
      Promise.resolve(
        mutateArea(name, { ...area, mutate: sampled(area.mutate, sample) }, environment),
      );
    scores.push([name, await (area.flows ? withTestStores(run) : run(process.env))]);
  }
  for (const [name, score] of scores) console.log(describe(name, score));
  console.log(describe("all", sum(scores.map(([, score]) => score))));
  return 0;
}

/** Returns every Nth block of lines of these files, counted over all of them, so that short files have a share. */
function sampled(patterns: readonly string[], every: number): string[] {
  const files = patterns.flatMap((pattern) => filesOf(pattern));
  if (every === 1) return files;
  const blocks = files.flatMap((file) => {
    const lines = readFileSync(join(ROOT, file), "utf8").split("\n").length;
    return Array.from(
      { length: Math.ceil(lines / BLOCK) },
      (_, n) => `${file}:${n * BLOCK + 1}-${(n + 1) * BLOCK}`,
    );
  });
  return blocks.filter((_, n) => n % every === every - 1);
}

/** Returns the files of a pattern. Throws if one of its alternatives matches no file, because a file was renamed. */
function filesOf(pattern: string): string[] {
  const [braces, names] = /\{([^}]+)\}/.exec(pattern) ?? [];
  if (braces !== undefined && names !== undefined)
    return names.split(",").flatMap((name) => filesOf(pattern.replace(braces, name)));
  const files = globSync(pattern, { cwd: ROOT }).toSorted();
  if (files.length === 0)
    throw new Error(`${pattern} matches no file. Correct the area in scripts/mutate.ts.`);
  return files;
}

function mutateArea(name: string, area: Area, environment: NodeJS.ProcessEnv): Score {
  const folder = join(ROOT, FOLDER, name);
  mkdirSync(folder, { recursive: true });
  const config = join(folder, "stryker.json");
  const report = join(folder, "report.json");
  writeFileSync(
    config,
    JSON.stringify(settings(area, { report, sandbox: `${FOLDER}/${name}/run` })),
  );
  const { status } = spawnSync(
    process.execPath,
    [join(ROOT, "node_modules/@stryker-mutator/core/bin/stryker.js"), "run", config],
    { cwd: ROOT, env: environment, stdio: "inherit" },
  );
  if (status !== 0) throw new Error(`StrykerJS ended with status ${status} in the area ${name}.`);
  return scoreOf(readFileSync(report, "utf8"));
}

function settings(area: Area, paths: { readonly report: string; readonly sandbox: string }) {
  return {
    testRunner: "command",
    commandRunner: { command: commandOf(area) },
    mutate: area.mutate,
    plugins: [],
    reporters: ["clear-text", "progress-append-only", "json"],
    clearTextReporter: { reportTests: false },
    jsonReporter: { fileName: paths.report },
    tempDirName: paths.sandbox,
    // StrykerJS must not rewrite tsconfig.json in its sandbox: it calls a compiler API that TypeScript 7 no longer
    // has.
    tsconfigFile: "none",
    disableTypeChecks: false,
    timeoutMS: LOADED_MS,
    ignorePatterns: ["**", ...COPIED.map((path) => `!${path}`)],
  };
}

/** Builds the test command. Its steps run one after another, and the first failing test kills the mutant. */
function commandOf({ tests, flows, seeds }: Area): string {
  const bun = process.execPath;
  const testing = (files: readonly string[]) =>
    `${bun} test --bail --timeout=${HANGING_MS} ${files.join(" ")}`;
  return [
    testing(tests),
    ...(flows === undefined ? [] : [testing(flows)]),
    ...(seeds === undefined ? [] : [`${bun} scripts/simulate.ts --workers 1 --seeds ${seeds}`]),
  ].join(" && ");
}

/** The files that StrykerJS copies into its sandbox. `node_modules` is linked instead. */
const COPIED = [
  "package.json",
  "bunfig.toml",
  "tsconfig.json",
  "{db,deploy,dispatcher,docs,scripts,src,tests}/**",
];

/** Counts the mutants of a report in the format `mutation-testing-report-schema`. */
function scoreOf(report: string): Score {
  const { files }: { files: Record<string, { mutants: { status: string }[] }> } =
    JSON.parse(report);
  const statuses = Object.values(files).flatMap(({ mutants }) => mutants.map((one) => one.status));
  const count = (...wanted: string[]) => statuses.filter((one) => wanted.includes(one)).length;
  const killed = count("Killed", "Timeout");
  const survived = count("Survived", "NoCoverage");
  return { mutants: killed + survived, killed, survived };
}

function sum(scores: readonly Score[]): Score {
  const total = (key: keyof Score) => scores.reduce((all, one) => all + one[key], 0);
  return { mutants: total("mutants"), killed: total("killed"), survived: total("survived") };
}

function describe(name: string, { mutants, killed, survived }: Score): string {
  const score = mutants === 0 ? "-" : `${((100 * killed) / mutants).toFixed(1)} %`;
  return `${name.padEnd(8)} ${mutants} mutants, ${killed} killed, ${survived} survived: ${score}`;
}

process.exitCode = await main();
