// The receivers of the benchmark, in a process of their own: every address of 127.0.0.0/8 is a host. They answer 200 as
// cheaply as possible, remember when each delivery came, fail or hang if they are told to.
//   bun scripts/bench/sink.ts, with an IPC channel
export type SinkOrder =
  | { readonly kind: "reset"; readonly failFirst: boolean; readonly hang: readonly string[] }
  | { readonly kind: "report" };

export type SinkAnswer =
  | { readonly kind: "listening"; readonly port: number; readonly tlsPort: number | undefined }
  | { readonly kind: "done" }
  | { readonly kind: "report"; readonly arrivals: readonly Arrival[]; readonly count: number };

/** Delivery id, attempt, host, milliseconds since the epoch. */
export type Arrival = readonly [id: string, attempt: string, host: string, at: number];

interface Connection {
  rest: Buffer;
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const FAILED = "HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n";
/** Arrivals that are remembered one by one; a throughput run is only counted. */
const REMEMBERED = 600_000;

let arrivals: Arrival[] = [];
let count = 0;
let failFirst = false;
let hang = new Set<string>();

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
      answers += answerTo(head);
      buffer = buffer.subarray(total);
    }
    socket.data.rest = Buffer.from(buffer);
    if (answers !== "") socket.write(answers);
  },
};

function answerTo(head: string): string {
  count += 1;
  const host = /host: ([^\r:]+)/i.exec(head)?.[1] ?? "";
  const attempt = /x-svc-attempt: (\d)/i.exec(head)?.[1] ?? "";
  if (arrivals.length < REMEMBERED) {
    const id = /x-svc-delivery: (\w+)/i.exec(head)?.[1] ?? "";
    arrivals.push([id, attempt, host, performance.timeOrigin + performance.now()]);
  }
  if (hang.has(host)) return "";
  return failFirst && attempt === "1" ? FAILED : OK;
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
    failFirst = order.failFirst;
    hang = new Set(order.hang);
    return answer({ kind: "done" });
  }
  answer({ kind: "report", arrivals, count });
});
process.on("disconnect", () => process.exit(0));
answer({ kind: "listening", port: plain.port, tlsPort: secure?.port });

function answer(what: SinkAnswer): void {
  process.send?.(what);
}
