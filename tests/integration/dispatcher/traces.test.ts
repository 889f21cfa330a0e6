// A trace covers both processes, from the provider's request to the record of the delivery, as a collector receives it.
import { afterEach, beforeEach, expect, test } from "bun:test";

import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { traceIdsOf } from "../../../src/lib/spans.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { ApiProcess } from "../../support/processes/api-process.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { addProvider, connectStore, providerEvent, reportedReview } from "../../support/factory.ts";
import { insertSubscription } from "../../support/outbox.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { addTenants } from "../../support/tenants.ts";

test("one trace shows the request, the commit, the wake, the load, the POST and the record", async () => {
  const { api, provider, review, stop } = await startBoth({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  });
  // The requests run at the same time, so that one batch has several of them.
  const answers = await Promise.all([1, 2, 3].map((n) => api.report(provider, [review(n)])));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  await until("three deliveries", () => receiver.received.length === 3);
  await stop();
  const ids = receiver.received.map(({ headers }) => String(headers["x-svc-delivery"]));
  for (const id of ids) {
    const trace = traceIdsOf(id);
    const own = collector.spans.filter(({ traceId }) => traceId === trace?.traceId);
    const [root] = own.filter(({ parentSpanId }) => !parentSpanId);
    expect(root?.spanId).toBe(trace?.rootId ?? "");
    expect(own.filter((span) => span !== root && span.parentSpanId !== root?.spanId)).toEqual([]);
    expect(new Set(own.map(({ service, name }) => `${service} ${name}`))).toEqual(
      new Set([
        "reviewrelay-api POST /api/v1/providers/:provider/events",
        "reviewrelay-api commit",
        "reviewrelay-api wake",
        "reviewrelay-dispatcher load",
        "reviewrelay-dispatcher POST",
        "reviewrelay-dispatcher record",
      ]),
    );
    const started = (name: string) =>
      BigInt(own.find((span) => span.name === name)?.startTimeUnixNano ?? 0);
    expect(started("record") >= started("POST")).toBe(true);
    for (const span of own)
      expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano)).toBe(true);
  }
  expect(new Set(ids).size).toBe(3);
});

test("a trace links to the trace of its caller, and both processes sample the same deliveries", async () => {
  const { api, provider, review, stop } = await startBoth({
    OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
    OTEL_TRACES_SAMPLER_ARG: "0.5",
  });
  const traceparent = `00-${CALLER.traceId}-${CALLER.spanId}-01`;
  for (let n = 0; n < 24; n++) await api.report(provider, [review(100 + n)], { traceparent });
  await until("the deliveries", () => receiver.received.length === 24);
  await stop();
  const services = new Map<string, Set<string>>();
  for (const { traceId, service } of collector.spans)
    services.set(traceId, (services.get(traceId) ?? new Set()).add(service));
  // A share of 0.5 samples all 24 deliveries, or none, once in eight million runs.
  expect(services.size).toBeGreaterThan(0);
  expect(services.size).toBeLessThan(24);
  for (const both of services.values()) expect(both.size).toBe(2);
  const roots = collector.spans.filter(({ parentSpanId }) => !parentSpanId);
  for (const { links } of roots) expect(links).toMatchObject([CALLER]);
});

test("an unreachable collector prevents no delivery and delays no shutdown", async () => {
  const { api, provider, review, stop } = await startBoth({
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
  });
  expect((await api.report(provider, [review(200)])).status).toBe(200);
  await until("the delivery", () => receiver.received.length === 1);
  await stop();
  expect(await api.exited()).toBe(0);
});

test.each([
  ["no module of the OpenTelemetry SDK is loaded without a collector", "", /^loaded 0$/m],
  ["its modules are loaded with one", "http://127.0.0.1:9", /^loaded [1-9]/m],
])("%s", async (_, endpoint, loaded) => {
  const script = `
    process.env.METRICS_PORT = "";
    await import("./src/main.ts");
    console.log("loaded " + Object.keys(require.cache).filter((path) => /@opentelemetry.(?!api\\b)/.test(path)).length);
    process.exit(0);`;
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, "-e", script], {
    env: {
      PATH: process.env["PATH"] ?? "",
      DATABASE_URL: database.url,
      REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
      MASTER_KEY: Buffer.from(key).toString("base64"),
      PORT: String(await freePort()),
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    },
  });
  const said = stderr.toString();
  expect([exitCode, stdout.toString()], said).toEqual([0, expect.stringMatching(loaded)]);
});

const key = crypto.getRandomValues(new Uint8Array(32));

const box = createSecretBox({ current: key });

interface Sent {
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
}

/** A collector for OTLP over HTTP that keeps all spans. */
interface Collector {
  readonly url: string;
  readonly spans: Sent[];
  stop(): void;
}

function startCollector(): Collector {
  const spans: Sent[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      expect(new URL(request.url).pathname).toBe("/v1/traces");
      // The exported spans have no static type.
      // oxlint-disable-next-line typescript/no-explicit-any
      const body = (await request.json()) as any;
      for (const { resource, scopeSpans } of body.resourceSpans) {
        const named = resource.attributes.find(
          (one: { key: string }) => one.key === "service.name",
        );
        for (const scope of scopeSpans)
          for (const span of scope.spans)
            spans.push({ links: [], ...span, service: named.value.stringValue });
      }
      return Response.json({});
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    spans,
    stop: () => void server.stop(true),
  };
}

let database: TestDatabase;

let collector: Collector;

let receiver: Receiver;

const ends: (() => unknown)[] = [];

beforeEach(async () => {
  database = await createDatabase();
  collector = startCollector();
  receiver = await Receiver.start(() => 200);
});

afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  await receiver.stop();
  collector.stop();
  await database.drop();
});

async function startBoth(env: Readonly<Record<string, string>>) {
  const { db } = database;
  const { partners } = await addTenants(db);
  const [account] = partners[0].accounts;
  const provider = await addProvider(db, box, "traced");
  const siteId = await connectStore(db, account, { provider });
  await insertSubscription({ db, box }, { partnerId: partners[0].id, url: receiver.url });
  const settings = {
    DATABASE_URL: database.url,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: `traces-${crypto.randomUUID()}:`,
    MASTER_KEY: Buffer.from(key).toString("base64"),
    ...env,
  };
  const dispatcher = new DispatcherProcess(settings);
  dispatcher.start();
  ends.push(() => dispatcher.stop());
  const api = await ApiProcess.start(settings);
  ends.push(() => api.kill());
  /** Stops both processes, which export their remaining spans before they end. */
  const stop = async () => {
    api.signal("SIGTERM");
    await Promise.all([api.exited(), dispatcher.stop()]);
  };
  const review = (n: number) =>
    providerEvent("review.created", siteId, { review: reportedReview(`traced-${n}`) });
  return { api, provider, review, stop };
}

const CALLER = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
