// Starts the receivers (sink.ts) and reads the requests that they got.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Arrival, SinkAnswer, SinkOrder } from "./sink.ts";

export interface Sink {
  readonly child: ChildProcess;
  readonly port: number;
  readonly tlsPort: number | undefined;
  reset(options?: Partial<Omit<SinkOrder & { kind: "reset" }, "kind">>): Promise<void>;
  /** Returns the arrivals since the last reset or `takeArrivals`. */
  takeArrivals(): Promise<readonly Arrival[]>;
  /** Returns the number of requests since the last reset, and the CPU time of the sink's process in ms. */
  count(): Promise<{ count: number; cpuMs: number }>;
}

/** Returns URLs of the hosts 127.1.0.1, 127.1.0.2, … on the sink's port. */
export function hostsOf(port: number, count: number, scheme = "http"): string[] {
  return Array.from(
    { length: count },
    (_, n) => `${scheme}://127.1.${n >> 7}.${(n & 127) + 1}:${port}/hook`,
  );
}

export async function startSink(tls?: { certFile: string; keyFile: string }): Promise<Sink> {
  const child = spawn(process.execPath, [join(import.meta.dir, "sink.ts")], {
    env: {
      PATH: process.env["PATH"] ?? "",
      ...(tls && {
        BENCH_CERT: readFileSync(tls.certFile, "utf8"),
        BENCH_KEY: readFileSync(tls.keyFile, "utf8"),
      }),
    },
    // Detached, so that Ctrl-C does not reach it. It ends when the IPC channel closes.
    detached: true,
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ask = <K extends SinkAnswer["kind"]>(kind: K, order?: SinkOrder) =>
    new Promise<SinkAnswer & { kind: K }>((resolve, reject) => {
      const fail = () => reject(new Error("The receivers have ended."));
      const take = (answer: SinkAnswer) => {
        if (answer.kind !== kind) return;
        child.off("message", take);
        child.off("disconnect", fail);
        resolve(answer as SinkAnswer & { kind: K });
      };
      if (!child.connected) return fail();
      child.on("message", take);
      child.once("disconnect", fail);
      if (order) child.send(order);
    });
  const { port, tlsPort } = await ask("listening");
  return {
    child,
    port,
    tlsPort,
    reset: async (options = {}) => {
      await ask("done", { kind: "reset", hang: [], ...options });
    },
    takeArrivals: async () => (await ask("report", { kind: "report" })).arrivals,
    count: () => ask("count", { kind: "count" }),
  };
}

/** Creates a certificate for the hosts; returns undefined without openssl. */
export function selfSigned(folder: string): { certFile: string; keyFile: string } | undefined {
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const names = Array.from({ length: 128 }, (_, n) => `IP:127.1.0.${n + 1}`).join(",");
  const options =
    "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench";
  const files = ["-addext", `subjectAltName=${names}`, "-keyout", keyFile, "-out", certFile];
  const { exitCode } = Bun.spawnSync(["openssl", ...options.split(" "), ...files], {
    stdout: "ignore",
    stderr: "ignore",
  });
  return exitCode === 0 ? { certFile, keyFile } : undefined;
}
