// `bun run bench names` measures whether host names without a DNS answer slow down other deliveries and sign-ins.
//
// The base load is events to a healthy receiver that closes each connection, so that each delivery needs a look-up,
// and sign-ins at one partner. In every second phase 32 other partners have events at silent names, and an admin of
// another partner updates a webhook_url to such names, four at a time. Phases alternate, so that other activity of
// the machine affects both; only the ratios are meaningful. It needs Linux and root, because the processes get their
// own resolv.conf.
import { createServer } from "node:http";

import { BASE_PATH } from "../../src/http/access.ts";
import { recordActions } from "../../src/outbox/queries.ts";
import { freePort } from "../chaos/addresses.ts";
import { resolverFault, startNameServer } from "../chaos/name-server.ts";
import { addUsers, BENCH_PASSWORD, untilReady } from "./auth-rig.ts";
import { actionOf, insertBacklog, insertPlace } from "./events.ts";
import { quantile, round } from "./figures.ts";
import { startRig, writeResult } from "./rig.ts";

/** An unanswered look-up is abandoned after the same time. */
const SECONDS = 10;
const PAIRS = 6;
const EVENTS_PER_SECOND = 20;
const SIGN_IN_EVERY_MS = 50;
const SILENT = 32;
const UPDATES_AT_ONCE = 4;
/** A delivery that has not arrived by then counts with this duration. */
const PATIENCE_MS = 60_000;
const JSON_TYPE = { "Content-Type": "application/json" };

interface Waits {
  readonly receipts: number[];
  readonly missing: number;
  readonly signIns: number[];
  readonly refused: number;
}

const nowMs = () => performance.timeOrigin + performance.now();
const fault = resolverFault();
if (fault !== undefined) throw new Error(fault);

const silent = Array.from({ length: SILENT }, (_, n) => `silent-${n}.test`);
const names = await startNameServer({
  "good.test": () => ({ addresses: ["127.0.0.1"] }),
  ...Object.fromEntries(silent.map((name) => [name, () => "silence" as const])),
});
const arrivals = new Map<string, number>();
const receiver = createServer((request, response) => {
  arrivals.set(String(request.headers["x-svc-delivery"]), nowMs());
  response.writeHead(200, { Connection: "close" }).end();
});
const [receiverPort, apiPort] = [await freePort(), await freePort()];
await new Promise<void>((resolve) => receiver.listen(receiverPort, "127.0.0.1", resolve));
const rig = await startRig(names.prefix);
let api: Bun.Subprocess | undefined;
try {
  const [admin = ""] = await addUsers(rig.db, "admin.example", 1);
  const [other = ""] = await addUsers(rig.db, "other.example", 1);
  const place = await insertPlace(rig.db);
  const [healthy] = await rig.subscribe([`http://good.test:${receiverPort}/hook`]);
  if (healthy === undefined) throw new Error("There is no subscription.");
  // Long delays keep retries of one phase out of the next.
  await rig.startDispatcher({ RETRY_DELAYS_MS: "3600000,3600000,3600000" });
  api = Bun.spawn([...names.prefix, process.execPath, "src/main.ts", "api"], {
    env: {
      PATH: process.env["PATH"] ?? "",
      PARENT_PID: String(process.pid),
      PORT: String(apiPort),
      RATE_LIMITS: "off",
      ...rig.env,
    },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const origin = `http://127.0.0.1:${apiPort}`;
  await untilReady(origin);
  const root = `${origin}${BASE_PATH}`;
  const signIn = (email: string) => post(`${root}/login`, { email, password: BENCH_PASSWORD });

  const offer = async (): Promise<Pick<Waits, "receipts" | "missing">> => {
    const commits = new Map<string, number>();
    const pending: Promise<void>[] = [];
    const startedAt = performance.now();
    for (let n = 0; n < EVENTS_PER_SECOND * SECONDS; n++) {
      await Bun.sleep(Math.max(0, startedAt + (n * 1_000) / EVENTS_PER_SECOND - performance.now()));
      const action = actionOf(place, healthy);
      const committed = rig.db.transaction((tx) => recordActions(tx, [action], new Date()));
      pending.push(
        committed.then((wakes) => {
          commits.set(action.eventId, nowMs());
          return rig.schedule.wake(wakes);
        }),
      );
    }
    await Promise.all(pending);
    const end = nowMs() + PATIENCE_MS;
    const missing = () => [...commits.keys()].filter((id) => !arrivals.has(id)).length;
    while (missing() > 0 && nowMs() < end) await Bun.sleep(20);
    const receipts = [...commits].map(([id, at]) => (arrivals.get(id) ?? nowMs()) - at);
    return { receipts, missing: missing() };
  };
  const signInAgain = async (): Promise<Pick<Waits, "signIns" | "refused">> => {
    const signIns: number[] = [];
    let refused = 0;
    for (const end = performance.now() + SECONDS * 1_000; performance.now() < end;) {
      const startedAt = performance.now();
      if ((await signIn(other)).status !== 200) refused += 1;
      signIns.push(performance.now() - startedAt);
      await Bun.sleep(SIGN_IN_EVERY_MS);
    }
    return { signIns, refused };
  };
  const measure = async (): Promise<Waits> => {
    const [offered, signedIn] = await Promise.all([offer(), signInAgain()]);
    return { ...offered, ...signedIn };
  };

  await signInAgain();
  const { token } = await jsonOf(await signIn(admin));
  const authorization = { Authorization: `Bearer ${String(token)}` };
  const { id } = await jsonOf(
    await post(
      `${root}/partner/webhooks`,
      { label: "x", webhook_url: "http://good.test/", delivery_kind: "immediate" },
      authorization,
    ),
  );
  const besideSilent = async (): Promise<Waits> => {
    const hanging = await rig.subscribe(silent.map((name) => `http://${name}/hook`));
    await insertBacklog(rig.db, place, hanging, 2);
    await rig.schedule.wake(hanging);
    const over = new AbortController();
    const updates = Array.from({ length: UPDATES_AT_ONCE }, async (_, worker) => {
      for (let n = worker; !over.signal.aborted; n += UPDATES_AT_ONCE)
        await post(
          `${root}/partner/webhooks/${String(id)}`,
          { webhook_url: `http://${silent[n % SILENT]}/` },
          authorization,
        );
    });
    const waits = await measure();
    over.abort();
    await Promise.all(updates);
    return waits;
  };
  const [quiet, beside]: [Waits[], Waits[]] = [[], []];
  for (let pair = 0; pair < PAIRS; pair++) {
    quiet.push(await measure());
    beside.push(await besideSilent());
  }
  const row = { silent: SILENT, quiet: figuresOf(quiet), beside: figuresOf(beside) };
  const ratios = {
    receipt: round(row.beside.receiptP99Ms / row.quiet.receiptP99Ms, 2),
    signIn: round(row.beside.signInP99Ms / row.quiet.signInP99Ms, 2),
  };
  for (const [phase, one] of Object.entries({ quiet: row.quiet, beside: row.beside }))
    console.log(
      `${phase}: receipt p50 ${one.receiptP50Ms} ms, p99 ${one.receiptP99Ms} ms, ${one.missing} of ${one.events} missing; ` +
        `sign-in p50 ${one.signInP50Ms} ms, p99 ${one.signInP99Ms} ms, ${one.refused} of ${one.signIns} refused`,
    );
  console.log(
    `p99 beside ${SILENT} silent names: receipt ${ratios.receipt} times the quiet one, sign-in ${ratios.signIn} times`,
  );
  console.log(`Written to ${writeResult("names", { ...row, ratios })}`);
} finally {
  api?.kill();
  await rig.stop();
  receiver.close();
  names.stop();
}
process.exit(0);

function post(url: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify(body),
  });
}

async function jsonOf(response: Response): Promise<Record<string, unknown>> {
  return { ...Object(await response.json()) };
}

function figuresOf(phases: readonly Waits[]) {
  const [receipts, signIns] = [
    phases.flatMap((one) => one.receipts),
    phases.flatMap((one) => one.signIns),
  ];
  const missing = phases.reduce((sum, one) => sum + one.missing, 0);
  const refused = phases.reduce((sum, one) => sum + one.refused, 0);
  return {
    events: receipts.length,
    missing,
    receiptP50Ms: quantile(receipts, 0.5),
    receiptP99Ms: quantile(receipts, 0.99),
    signIns: signIns.length,
    refused,
    signInP50Ms: quantile(signIns, 0.5),
    signInP99Ms: quantile(signIns, 0.99),
  };
}
