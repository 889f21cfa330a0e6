// Checks that alert rules, dashboard, runbook and log events agree with each other and with the product.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { PoolWatches } from "../../../db/pool-watch.ts";
import { connect, type RawDb } from "../../../db/client.ts";
import { maintenanceJobs } from "../../../db/schema/dispatchers.ts";
import { DispatcherTelemetry } from "../../../dispatcher/telemetry.ts";
import { FIGURES_AT_MOST, readFigures } from "../../../dispatcher/maintenance/queries.ts";
import { wholly } from "../../../dispatcher/store/quarantine.ts";
import { apiMetrics } from "../../../src/http/metrics.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createProcessMetrics } from "../../../src/lib/metrics.ts";
import { createPasswords } from "../../../src/lib/password.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import {
  forgetQueue,
  insertSubscription,
  insertTenant,
  passQueue,
  queueCopies,
  record,
  reviewAction,
} from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { parsePrometheus } from "../../support/prometheus.ts";
import { until } from "../../support/network/receiver.ts";
import { fixture } from "../../support/fixture.ts";
import { lacks } from "../../support/needs.ts";

const database = fixture(() => createDatabase("roles"));

describe("the alert rules", () => {
  test.skipIf(lacks("prometheus"))("pass their own tests", () => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(
      ["promtool", "test", "rules", "rules.test.yaml"],
      { cwd: join(ROOT, "deploy/prometheus"), env: process.env },
    );
    expect([exitCode, `${stdout.toString()}${stderr.toString()}`]).toEqual([
      0,
      expect.stringContaining("SUCCESS"),
    ]);
  });

  test("are tested in firing and silent cases, and have an entry in the runbook", () => {
    const { tests } = Bun.YAML.parse(read("deploy/prometheus/rules.test.yaml")) as Cases;
    const cases = tests.flatMap((one) => one.alert_rule_test);
    for (const { alert, annotations } of rules) {
      const own = cases.filter(({ alertname }) => alertname === alert);
      const fires = own.map(({ exp_alerts: fired }) => fired.length > 0);
      expect([alert, fires]).toEqual([alert, [true, false]]);
      expect(annotations.runbook).toBe(`docs/operations/runbook.md#${alert.toLowerCase()}`);
    }
    const entries = [...runbook.matchAll(/^### (\w+)$/gm)].map(([, name = ""]) => name);
    expect(entries).toEqual(rules.map(({ alert }) => alert));
  });

  test("and the dashboard use only metrics that the processes expose", async () => {
    const { types } = parsePrometheus(await allMetrics().metrics());
    const dashboard: Dashboard = JSON.parse(read("deploy/grafana/reviewrelay.json"));
    const asked = [
      ...rules.map(({ expr }) => expr),
      ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ];
    const names = asked.flatMap((expr) => expr.match(/\b(?:reviewrelay|process)_[a-z_]+/g) ?? []);
    const families = names.map((name) =>
      types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ""),
    );
    expect([...new Set(families.filter((name) => !types.has(name)))]).toEqual([]);
  });

  test("or the runbook name every metric that the processes expose", async () => {
    const { types } = parsePrometheus(await allMetrics().metrics());
    expect(types.size).toBeGreaterThan(20);
    const used = [runbook, ...rules.map(({ expr }) => expr)].join("\n");
    const words = new Set(used.match(/\w+/g)?.map((name) => name.replace(/_(bucket|count)$/, "")));
    expect([...types.keys()].filter((name) => !words.has(name))).toEqual([]);
  });
});

test("the runbook's queries run unchanged", async () => {
  const queries = [...runbook.matchAll(/^```sql run .*\n([\s\S]*?)^```$/gm)].map(
    ([, text = ""]) => text,
  );
  expect(queries.length).toBeGreaterThan(1);
  for (const query of queries) await database.db.sql.unsafe(query);
});

test("the runbook's query finds another role's transaction as the administrator, not as the service's role", async () => {
  const { sql } = database.db;
  const role = `service_${crypto.randomUUID().slice(0, 8)}`;
  await sql.unsafe(`create role ${role} login password 'x'`);
  const holder = connect(database.url, { max: 1, name: "holder" });
  const url = Object.assign(new URL(database.url), { username: role, password: "x" }).href;
  const service = connect(url, { max: 1, name: "service" });
  const [, query = ""] = /^```sql run .*\n(select pid, state[\s\S]*?)^```$/m.exec(runbook) ?? [];
  const [begun, over] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()];
  const held = holder.transaction(async (tx) => {
    const [row] = await tx.sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    begun.resolve(row?.pid ?? 0);
    await over.promise;
  });
  const pid = await begun.promise;
  const finds = async (db: RawDb) => (await db.sql.unsafe(query)).some((row) => row["pid"] === pid);
  await until("the administrator finds it", () => finds(database.db));
  expect(await finds(service)).toBe(false);
  const end = `select pg_terminate_backend(${pid})`;
  const failure: unknown = await service.sql.unsafe(end).catch((error: unknown) => error);
  expect(String(failure)).toMatch(/permission denied|must be a/);
  await sql.unsafe(end);
  over.resolve();
  await expect(held).rejects.toThrow();
  await Promise.all([holder.close(), service.close()]);
  await sql.unsafe(`drop role ${role}`);
});

test("the runbook explains every log event, and no other", () => {
  const calls = ["src", "dispatcher"].flatMap((folder) =>
    [...new Bun.Glob(`${folder}/**/*.ts`).scanSync(ROOT)].flatMap((path) => {
      const code = read(path);
      // `GroupRunner` gets the names of its events from its user.
      const given = code.matchAll(/\bevents: (\{ failed: [^}]*\})/g);
      const called = code.matchAll(/\blog(?:\??\.(?:debug|info|warn|error)|\[[^\]]*\])\(([^,)]*)/g);
      return [...given, ...called].map(([, text = ""]) => ({ path, text: text.trim() }));
    }),
  );
  const named = calls.map((call) => ({
    ...call,
    events: [...call.text.matchAll(/"(\w+\.\w+)"/g)].map(([, event = ""]) => event),
  }));
  const unnamed = named.filter(({ events }) => events.length === 0);
  expect(unnamed.map(({ path, text }) => [path, text])).toEqual([
    ["dispatcher/store/group-runner.ts", "this.#work.events.failed"],
    ["dispatcher/store/group-runner.ts", "this.#work.events.stuck"],
  ]);
  const events = new Set(named.flatMap((call) => call.events));
  const [, section = ""] = runbook.split("## Log events\n");
  const explained = [...section.matchAll(/`(\w+\.\w+)`/g)].map(([, event = ""]) => event);
  expect(explained.toSorted()).toEqual([...events].toSorted());
});

async function subscribed() {
  const { db } = database;
  const box = createSecretBox({ current: crypto.getRandomValues(new Uint8Array(32)) });
  const tenant = await insertTenant(db);
  const to = { partnerId: tenant.partnerId, url: "http://127.0.0.1:9" };
  const { subscriptionId } = await insertSubscription({ db, box }, to);
  return { subscriptionId, tenant };
}

test("the backlog is reported by state, with overdue mails, the ages of jobs and quarantined lanes by reason", async () => {
  const { db } = database;
  const { subscriptionId, tenant } = await subscribed();
  const actions = Array.from({ length: 3 }, () => reviewAction(tenant));
  await record(db, actions);
  await passQueue(db, subscriptionId);
  await db.sql`
    update outbox set state = 'waiting', due_at = now() where event_id = ${actions[0]?.eventId ?? ""}`;
  await db.sql`update maintenance_jobs set succeeded_at = now() - interval '2 hours' where name = 'partitions'`;
  const overdue = async () =>
    parsePrometheus(await allMetrics().metrics()).values.get("reviewrelay_mail_overdue_seconds");
  expect(await overdue()).toBe(0);
  await db.sql`
    insert into mails (id, kind, state, created_at, sealed_message, due_at)
    select '01J0000000000000000000000' || n, 'otp', 'queued', now(), 'x', now() + hours * interval '1 hour'
      from unnest(array[-1, -2, 1]) with ordinality as due(hours, n)`;
  const { values } = parsePrometheus(await allMetrics().metrics());
  const entries = (state: string) => values.get(`reviewrelay_backlog_deliveries{state="${state}"}`);
  expect([entries("pending"), entries("waiting"), entries("held")]).toEqual([2, 1, 0]);
  expect(
    values.get('reviewrelay_maintenance_age_seconds{name="partitions"}'),
  ).toBeGreaterThanOrEqual(7_200);
  const overdueS = values.get("reviewrelay_mail_overdue_seconds");
  expect(overdueS).toBeGreaterThanOrEqual(7_200);
  expect(overdueS).toBeLessThan(7_260);
  const lanes = (reason: string) => values.get(`reviewrelay_lanes_quarantined{reason="${reason}"}`);
  expect([lanes("locked"), lanes("unreadable"), lanes("unrecordable")]).toEqual([2, 1, undefined]);

  await db.sql`update webhook_subscriptions set state = 'disabled', disabled_at = now(), disabled_reason = 'failures'`;
  expect((await readFigures(db, [])).backlog).toContainEqual(
    expect.objectContaining({ state: "held", entries: 3 }),
  );
});

test("the backlog is counted up to its limit", async () => {
  const { db } = database;
  const { subscriptionId, tenant } = await subscribed();
  await forgetQueue(db);
  await record(db, [reviewAction(tenant)]);
  await queueCopies(db, subscriptionId, FIGURES_AT_MOST - 12, "log");
  await queueCopies(db, subscriptionId, 10, "rows");
  const pending = async () =>
    (await readFigures(db, [])).backlog.find(({ state }) => state === "pending")?.entries;
  expect(await pending()).toBe(FIGURES_AT_MOST - 1);
  await queueCopies(db, subscriptionId, 2, "log");
  expect(await pending()).toBe(FIGURES_AT_MOST);
});

test("figures of Postgres are omitted while it does not answer, and others are reported", async () => {
  const clock = systemClock;
  const metrics = createProcessMetrics({ clock, checks: {} });
  new DispatcherTelemetry(metrics, clock).figures(() => Promise.reject(new Error("away")));
  const { types, values } = parsePrometheus(await metrics.metrics());
  expect(types.has("reviewrelay_backlog_deliveries")).toBe(true);
  expect([...values.keys()].filter((name) => name.includes("backlog"))).toEqual([]);
  expect(values.has("process_cpu_seconds_total")).toBe(true);
});

describe("a pool", () => {
  test("logs slow statements by name or text and no others, and adds up the waits for a connection", async () => {
    const told: { statement: string }[] = [];
    const watches = new PoolWatches((slow) => void told.push(slow), HELD_MS);
    const db = connect(database.url, { max: 1, name: "reviewrelay-one", watches });
    const holdConnection = async (work: () => Promise<unknown>) => {
      const begun = Promise.withResolvers<void>();
      const held = db.transaction(async () => {
        begun.resolve();
        await systemClock.sleep(2 * HELD_MS);
      });
      await begun.promise;
      await Promise.all([held, work()]);
    };
    await holdConnection(() => db.transaction(async () => {}));
    const built = () => db.select({ name: maintenanceJobs.name }).from(maintenanceJobs);
    await built();
    expect(told).toEqual([]);
    expect(watches.pools[0]?.waitedMs).toBeGreaterThan(HELD_MS);
    // The wait for the only connection counts as part of the statement.
    await holdConnection(() => Promise.all([readFigures(db, []), built()]));
    const statements = told.map(({ statement }) => statement);
    const both = ["figures.backlog", 'select "name" from "maintenance_jobs"'];
    expect(statements).toEqual(expect.arrayContaining(both));
    await db.close();
  });
});

/** Longer than a read of a small table takes on a busy machine. */
const HELD_MS = 200;

const ROOT = join(import.meta.dir, "../../..");

const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook: string };
}

interface Rules {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
}

interface Cases {
  readonly tests: readonly {
    readonly alert_rule_test: readonly {
      readonly alertname: string;
      readonly exp_alerts: readonly unknown[];
    }[];
  }[];
}

interface Dashboard {
  readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
}

const { groups } = Bun.YAML.parse(read("deploy/prometheus/rules.yaml")) as Rules;

const rules = groups.flatMap((group) => group.rules);

const runbook = read("docs/operations/runbook.md");

/** Returns all metrics of a dispatcher and an API. */
function allMetrics() {
  const clock = systemClock;
  const watches = new PoolWatches(() => {});
  watches.open("reviewrelay-api");
  const metrics = createProcessMetrics({
    clock,
    checks: { postgres: async () => {}, redis: async () => {} },
    clockSkewMs: () => 0,
    pools: watches.pools,
  });
  const measured = new DispatcherTelemetry(metrics, clock);
  // The functions are only wrapped and never called.
  measured.deliver(() => Promise.reject(new Error("unused")));
  measured.store(Object.create(null));
  const quarantinedLanes = (["locked", "unreadable", "locked"] as const).map((reason) => ({
    ...wholly("01J00000000000000000000000", reason),
    since: "2026-06-01T12:00:00Z",
  }));
  const none = { shards: 0, actors: 0, waiting: 0, bytes: 0, lagMs: 0, hasOutage: false };
  measured.watch({ workload: { ...none, quarantinedLanes } });
  measured.figures(() => readFigures(database.db, ["partitions"]));
  apiMetrics(metrics, { passwords: createPasswords(), limiter: undefined });
  return metrics;
}
