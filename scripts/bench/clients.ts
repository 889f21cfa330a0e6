// `bun run bench dispatch clients` sends the same POSTs with the dispatcher's HTTP client and with libraries, each in a
// separate process, one after another. It prints the CPU time of a POST and its ratio to the dispatcher's client
// (medians of the rounds).
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { bareLoop } from "./bare-process.ts";
import { quantile, round } from "./figures.ts";
import { hostsOf, selfSigned, startSink } from "./receivers.ts";
import { writeResult } from "./rig.ts";

const SENDERS = ["client", "node", "undici", "fetch"] as const;
const ROUNDS = 3;
const CASES: readonly [count: number, posts: number, scheme: "http" | "https"][] = [
  [1, 20_000, "http"],
  [100, 40_000, "http"],
  [500, 40_000, "http"],
  [100, 20_000, "https"],
];

export async function compareClients(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-clients-"));
  const tls = selfSigned(folder);
  const sink = await startSink(tls);
  const rows = [];
  try {
    for (const [count, posts, scheme] of CASES) {
      const port = scheme === "http" ? sink.port : sink.tlsPort;
      if (port === undefined)
        console.log("Skipping https: openssl is not installed on this machine.");
      else rows.push(...(await compare({ count, posts, scheme, port, caFile: tls?.certFile })));
    }
  } finally {
    sink.child.kill("SIGTERM");
    rmSync(folder, { recursive: true });
  }
  writeResult("dispatch-clients", { clients: rows });
}

async function compare({ count, posts, scheme, port, caFile }: Case) {
  const urls = hostsOf(port, count, scheme);
  const taken = SENDERS.map((sender) => ({
    sender,
    cpuUs: [] as number[],
    perSecond: [] as number[],
  }));
  for (let n = 0; n < ROUNDS; n++)
    for (const { sender, cpuUs, perSecond } of taken) {
      const one = await bareLoop(sender, posts, urls, caFile === undefined ? {} : { caFile });
      cpuUs.push(one.cpuUs);
      perSecond.push(one.deliveries / one.seconds);
    }
  const [own] = taken;
  return taken.map(({ sender, cpuUs, perSecond }) => {
    const cpu = quantile(cpuUs, 0.5);
    const row = {
      hosts: count,
      scheme,
      sender,
      cpuUs: round(cpu, 1),
      perSecond: round(quantile(perSecond, 0.5)),
      cpuRatio: round(cpu / quantile(own?.cpuUs ?? [], 0.5), 2),
    };
    console.log(
      `${String(count).padStart(6)} hosts ${scheme.padEnd(5)}  ${sender.padEnd(6)}  ${row.cpuUs} µs of CPU a POST, ` +
        `${row.cpuRatio} of our client's; ${row.perSecond}/s`,
    );
    return row;
  });
}

interface Case {
  readonly count: number;
  readonly posts: number;
  readonly scheme: string;
  readonly port: number;
  readonly caFile: string | undefined;
}
