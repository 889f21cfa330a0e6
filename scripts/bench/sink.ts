// The receivers of the benchmarks, in a separate process: every address of 127.0.0.0/8 is a host. They answer 200 as
// cheaply as possible, record arrivals, and fail or hang on request. Run `bun scripts/bench/sink.ts` with an IPC
// channel.
export type SinkOrder =
  | {
      readonly kind: "reset";
      readonly hang: readonly string[];
      /** Time in ms after which hanging hosts respond; if absent, they never respond. */
      readonly hangMs?: number;
      /** Hosts that respond with 500 to every 50th first attempt. */
      readonly fail?: readonly string[];
      /** Prefix of the external ids of reviews whose events are rejected: with 500, every 7th time with 410. */
      readonly refuse?: string;
      /** Whether arrivals include the id of the body's review. */
      readonly keys?: boolean;
    }
  /** Clears the reported arrivals. */
  | { readonly kind: "report" }
  | { readonly kind: "count" };

export type SinkAnswer =
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

interface Connection {
  rest: Buffer;
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const FAILED = "HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n";
/** Maximum number of arrivals that are recorded individually. A throughput run needs only their count. */
const REMEMBERED = 600_000;

let arrivals: Arrival[] = [];
let count = 0;
let hang = new Set<string>();
let hangMs: number | undefined;
let fail = new Set<string>();
let refuse: string | undefined;
let keys = false;
const KEY = '"external_review_id":"';
const FAIL_EACH = 50;
const GONE = "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n";
const GONE_EACH = 7;

const handler = {
  open(socket: Bun.Socket<Connection>) {
    socket.data = { rest: Buffer.alloc(0) };
  },
  data(socket: Bun.Socket<Connection>, chunk: Buffer) {
    let buffer = socket.data.rest.length === 0 ? chunk : Buffer.concat([socket.data.rest, chunk]);
    let answers = "";
    for (;;) {
      const end = buffer.indexOf("\r\n\r\n");
      if (end < 0) break;
      const head = buffer.toString("latin1", 0, end);
      const total = end + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (buffer.length < total) break;
      const text = answerTo(head, keys ? keyOf(buffer, end, total) : undefined);
      if (text === undefined && hangMs !== undefined) setTimeout(() => socket.write(OK), hangMs);
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
  if (refuse !== undefined && key?.startsWith(refuse))
    return count % GONE_EACH === 0 ? GONE : FAILED;
  if (attempt === "1" && count % FAIL_EACH === 0 && fail.has(host)) return FAILED;
  return OK;
}

const plain = Bun.listen<Connection>({ hostname: "0.0.0.0", port: 0, socket: handler });
const { BENCH_CERT: cert, BENCH_KEY: key } = process.env;
const secure =
  cert !== undefined && key !== undefined
    ? Bun.listen<Connection>({ hostname: "0.0.0.0", port: 0, socket: handler, tls: { cert, key } })
    : undefined;

process.on("message", (order: SinkOrder) => {
  if (order.kind === "reset") {
    arrivals = [];
    count = 0;
    hang = new Set(order.hang);
    hangMs = order.hangMs;
    fail = new Set(order.fail);
    refuse = order.refuse;
    keys = order.keys ?? false;
    return answer({ kind: "done" });
  }
  if (order.kind === "count") {
    const { user, system } = process.cpuUsage();
    return answer({ kind: "count", count, cpuMs: (user + system) / 1_000 });
  }
  answer({ kind: "report", arrivals });
  arrivals = [];
});
process.on("disconnect", () => process.exit(0));
answer({ kind: "listening", port: plain.port, tlsPort: secure?.port });

function answer(what: SinkAnswer): void {
  process.send?.(what);
}
