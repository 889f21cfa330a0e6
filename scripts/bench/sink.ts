// The receivers of the benchmarks, in a separate process: every address of 127.0.0.0/8 is a host. They answer 200 as
// cheaply as possible, record arrivals, and fail or hang on request. `startSink` runs this file as that process and
// reads what the receivers got.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** How the receivers behave; without it they answer 200 to everything. */
interface Behaviour {
  /** Hosts that do not respond. */
  readonly hang?: readonly string[];
  /** Time in ms after which hanging hosts respond; if absent, they never respond. */
  readonly hangMs?: number;
  /** Hosts that respond with 500 to every 50th first attempt. */
  readonly fail?: readonly string[];
  /** Prefix of the external ids of reviews whose events are rejected: with 500, every 7th time with 410. */
  readonly refuse?: string;
  /** Whether arrivals include the external id of the body's review. */
  readonly keys?: boolean;
}

type Order =
  | ({ readonly kind: "reset" } & Behaviour)
  /** Clears the reported arrivals. */
  | { readonly kind: "report" }
  | { readonly kind: "count" };

type Answer =
  | { readonly kind: "listening"; readonly port: number; readonly tlsPort: number | undefined }
  | { readonly kind: "done" }
  | { readonly kind: "count"; readonly count: number; readonly cpuMs: number }
  | { readonly kind: "report"; readonly arrivals: readonly Arrival[] };

/**
 * The id of the delivery, the attempt, the host, the time in ms since the epoch, and the review's external id if
 * requested.
 */
export type Arrival = readonly [
  id: string,
  attempt: string,
  host: string,
  at: number,
  key?: string,
];

interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface Sink {
  readonly port: number;
  readonly tlsPort: number | undefined;
  /** Clears all arrivals and their count. */
  reset(behaviour?: Behaviour): Promise<void>;
  /** Returns the arrivals since the last reset or `takeArrivals`. */
  takeArrivals(): Promise<readonly Arrival[]>;
  /** Returns the number of requests since the last reset, and the CPU time of the sink's process in ms. */
  count(): Promise<{ count: number; cpuMs: number }>;
  stop(): void;
}

export async function startSink(tls?: Certificate): Promise<Sink> {
  const child: ChildProcess = spawn(process.execPath, [import.meta.path], {
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
  const ask = <K extends Answer["kind"]>(kind: K, order?: Order) =>
    new Promise<Answer & { kind: K }>((resolve, reject) => {
      const fail = () => reject(new Error("The receivers have ended."));
      const take = (answer: Answer) => {
        if (answer.kind !== kind) return;
        child.off("message", take);
        child.off("disconnect", fail);
        resolve(answer as Answer & { kind: K });
      };
      if (!child.connected) return fail();
      child.on("message", take);
      child.once("disconnect", fail);
      if (order) child.send(order);
    });
  const { port, tlsPort } = await ask("listening");
  return {
    port,
    tlsPort,
    reset: async (behaviour = {}) => {
      await ask("done", { kind: "reset", ...behaviour });
    },
    takeArrivals: async () => (await ask("report", { kind: "report" })).arrivals,
    count: () => ask("count", { kind: "count" }),
    stop: () => void child.kill("SIGTERM"),
  };
}

/** Returns URLs of the hosts 127.1.0.1, 127.1.0.2, … on the sink's port. */
export function hostsOf(port: number, count: number, scheme = "http"): string[] {
  return Array.from(
    { length: count },
    (_, n) => `${scheme}://127.1.${n >> 7}.${(n & 127) + 1}:${port}/hook`,
  );
}

/** Creates a certificate for the hosts; returns undefined without openssl. */
export function selfSigned(folder: string): Certificate | undefined {
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

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const FAILED = "HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n";
const GONE = "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n";
const FAIL_EACH = 50;
const GONE_EACH = 7;
/** Maximum number of arrivals that are recorded individually. A throughput run needs only their count. */
const REMEMBERED = 600_000;
const KEY = '"external_review_id":"';

let arrivals: Arrival[] = [];
let count = 0;
let behaviour: Omit<Behaviour, "hang" | "fail"> = {};
let hang = new Set<string>();
let fail = new Set<string>();

const handler = {
  open(socket: Bun.Socket<{ rest: Buffer }>) {
    socket.data = { rest: Buffer.alloc(0) };
  },
  data(socket: Bun.Socket<{ rest: Buffer }>, chunk: Buffer) {
    let buffer = socket.data.rest.length === 0 ? chunk : Buffer.concat([socket.data.rest, chunk]);
    let answers = "";
    for (;;) {
      const end = buffer.indexOf("\r\n\r\n");
      if (end < 0) break;
      const head = buffer.toString("latin1", 0, end);
      const total = end + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (buffer.length < total) break;
      const text = answerTo(head, behaviour.keys ? keyOf(buffer, end, total) : undefined);
      if (text === undefined && behaviour.hangMs !== undefined)
        setTimeout(() => socket.write(OK), behaviour.hangMs);
      answers += text ?? "";
      buffer = buffer.subarray(total);
    }
    socket.data.rest = Buffer.from(buffer);
    if (answers !== "") socket.write(answers);
  },
};

function keyOf(buffer: Buffer, from: number, to: number): string {
  const start = buffer.indexOf(KEY, from) + KEY.length;
  if (start < KEY.length || start > to) return "";
  return buffer.toString("latin1", start, buffer.indexOf('"', start));
}

function answerTo(head: string, key: string | undefined): string | undefined {
  count += 1;
  const host = /host: ([^\r:]+)/i.exec(head)?.[1] ?? "";
  const attempt = /x-svc-attempt: (\d)/i.exec(head)?.[1] ?? "";
  if (arrivals.length < REMEMBERED) {
    const id = /x-svc-delivery: (\w+)/i.exec(head)?.[1] ?? "";
    const at = performance.timeOrigin + performance.now();
    arrivals.push(key === undefined ? [id, attempt, host, at] : [id, attempt, host, at, key]);
  }
  if (hang.has(host)) return undefined;
  if (behaviour.refuse !== undefined && key?.startsWith(behaviour.refuse))
    return count % GONE_EACH === 0 ? GONE : FAILED;
  if (attempt === "1" && count % FAIL_EACH === 0 && fail.has(host)) return FAILED;
  return OK;
}

function obey(order: Order): Answer {
  if (order.kind === "reset") {
    arrivals = [];
    count = 0;
    behaviour = order;
    hang = new Set(order.hang);
    fail = new Set(order.fail);
    return { kind: "done" };
  }
  if (order.kind === "count") {
    const { user, system } = process.cpuUsage();
    return { kind: "count", count, cpuMs: (user + system) / 1_000 };
  }
  const taken = arrivals;
  arrivals = [];
  return { kind: "report", arrivals: taken };
}

if (import.meta.main) {
  const { BENCH_CERT: cert, BENCH_KEY: key } = process.env;
  const listen = { hostname: "0.0.0.0", port: 0, socket: handler };
  const plain = Bun.listen(listen);
  const secure =
    cert !== undefined && key !== undefined
      ? Bun.listen({ ...listen, tls: { cert, key } })
      : undefined;
  const answer = (what: Answer) => void process.send?.(what);
  process.on("message", (order: Order) => answer(obey(order)));
  process.on("disconnect", () => process.exit(0));
  answer({ kind: "listening", port: plain.port, tlsPort: secure?.port });
}
