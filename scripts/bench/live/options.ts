// The options of `bun run bench live`.
import { resolve } from "node:path";
import { parseArgs } from "node:util";

import { ROOT } from "../../install/install.ts";
import { durationMs, numberOf, wrongUsage } from "../options.ts";

export const USAGE = `bun run bench live: the running product as processes of their own, on real stores, driven from outside.
  --only a,b     the parts to run (all): a one event a request, h the same of two hot partners, b open loop, c 500 events a request,
                 d half of the receivers hang, e 200 live watchers, f reads with many pending,
                 i a minute without work
  --rows N       history and attempts that are there before (1000000), written contiguously
  --pending N    entries pending in part f (1000000)
  --attempts N   recent attempts of that subscription in part f (250000); 10000000 takes some minutes
  --seconds N    how long each load lasts (8)
  --clients N    publishers in part a (64)
  --rates 20,200 events a second in part b (200)
  --tree PATH    the checkout whose API, dispatcher and migrations run (this one)
  --executable PATH  the executable whose API, dispatcher and migrations run (the checkout runs)
  --postgres N   the version of the embedded server, 15 to 18 (18); DATABASE_URL and REDIS_URL take others
  --label NAME   the result is written to bench-results/live-NAME.json
  --soak 10m     instead of the parts: events at --rate a second (200) to receivers of which a tenth fails at times`;

/** The parts in their order. Parts that leave data behind run last. */
const PARTS = ["a", "h", "c", "b", "i", "e", "d", "f"] as const;
type Part = (typeof PARTS)[number];

export interface Options {
  readonly parts: readonly Part[];
  readonly rows: number;
  readonly pending: number;
  readonly attempts: number;
  readonly seconds: number;
  readonly clients: number;
  readonly rates: readonly number[];
  readonly tree: string;
  readonly executable: string | undefined;
  readonly postgres: string;
  readonly label: string | undefined;
  readonly soakMs: number | undefined;
  readonly rate: number;
}

/** Parses the options; returns undefined for `--help`. */
export function readOptions(args: readonly string[]): Options | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", default: PARTS.join(",") },
      rows: { type: "string", default: "1000000" },
      pending: { type: "string", default: "1000000" },
      attempts: { type: "string", default: "250000" },
      seconds: { type: "string", default: "8" },
      clients: { type: "string", default: "64" },
      rates: { type: "string", default: "200" },
      tree: { type: "string", default: ROOT },
      executable: { type: "string" },
      postgres: { type: "string", default: "18" },
      label: { type: "string" },
      soak: { type: "string" },
      rate: { type: "string", default: "200" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const wanted = values.only.split(",");
  const unknown = wanted.filter((one) => !PARTS.some((part) => part === one));
  if (unknown.length > 0) throw wrongUsage(`There is no part ${unknown.join(", ")}`);
  return {
    parts: PARTS.filter((part) => wanted.includes(part)),
    rows: numberOf("--rows", values.rows),
    pending: numberOf("--pending", values.pending),
    attempts: numberOf("--attempts", values.attempts),
    seconds: numberOf("--seconds", values.seconds),
    clients: numberOf("--clients", values.clients),
    rates: values.rates.split(",").map((rate) => numberOf("--rates", rate)),
    tree: resolve(values.tree),
    executable: values.executable === undefined ? undefined : resolve(values.executable),
    postgres: values.postgres,
    label: values.label,
    soakMs: values.soak === undefined ? undefined : durationMs("--soak", values.soak),
    rate: numberOf("--rate", values.rate),
  };
}
