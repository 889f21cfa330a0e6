import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";

import { hitStatements } from "../../support/hit-statements.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { createSecretBox } from "../../../src/lib/secrets.ts";
import { PASSWORD } from "../../support/api.ts";
import { ApiProcess } from "../../support/processes/api-process.ts";
import { createTestSchedule } from "../../support/dispatch.ts";
import { DispatcherProcess } from "../../support/processes/dispatcher-process.ts";
import { addProvider, connectStore, created, type TestProvider } from "../../support/factory.ts";
import { insertSubscription } from "../../support/outbox.ts";
import { createDatabase } from "../../support/postgres.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { addTenants } from "../../support/tenants.ts";
import { fixture } from "../../support/fixture.ts";
import { isThorough } from "../../support/thorough.ts";

const database = fixture(createDatabase);
const receiver = fixture(() => Receiver.start());
const schedule = fixture(createTestSchedule);

test("cancelled and terminated statements lead to responses 200 and 503 only, and to no lost lease", async () => {
  const headers = { Authorization: `Bearer ${token}` };
  const hooks = `${api.root}${BASE_PATH}/partner/webhooks`;
  const paths = ["", `/${subscription}`, `/${subscription}/deliveries?per_page=100`];
  const answers: Record<string, number> = {};
  const note = (kind: string, { status, body }: Awaited<ReturnType<ApiProcess["call"]>>) => {
    const said = status === 200 ? "" : ` ${String(body["code"])}`;
    answers[`${kind} ${status}${said}`] = (answers[`${kind} ${status}${said}`] ?? 0) + 1;
    return status;
  };
  const accepted: string[] = [];
  const over = new AbortController();
  const read = async (nth: number) => {
    for (let n = nth; !over.signal.aborted; n++)
      note("read", await api.call("GET", `${hooks}${paths[n % paths.length]}`, { headers }));
  };
  const write = async (name: string) => {
    for (let n = 0; !over.signal.aborted; n++) {
      const review = `${name}-${n}`;
      if (note("write", await api.report(provider, [created(site, review)])) === 200)
        accepted.push(review);
    }
  };
  const clients = [...Array.from({ length: READERS }, (_, n) => read(n)), write("a"), write("b")];
  await until("deliveries flow", () => receiver.received.length > 20);
  await hitStatements(database.db, HITS_MS);
  over.abort();
  await Promise.all(clients);

  const kinds = Object.keys(answers).toSorted();
  const allowed = ["read 200", "read 503 unavailable", "write 200", "write 503 unavailable"];
  const wrong = kinds.filter((kind) => !allowed.includes(kind));
  const lost =
    dispatcher.log.match(/"(lease\.lost|dispatcher\.lost)"|TypeError|POOLER_FOUND/g) ?? [];
  expect({ answers, wrong, lost: [...lost] }).toEqual({ answers, wrong: [], lost: [] });
  // Otherwise no statement was hit.
  expect(kinds).toContain("read 503 unavailable");
  const history = await database.db.sql<{ eventId: string; name: string }[]>`
    select h.event_id as "eventId", r.external_review_id as name
      from review_history h join reviews r on r.id = h.review_id order by h.id`;
  const recorded = new Set(history.map(({ name }) => name));
  expect(accepted.filter((name) => !recorded.has(name))).toEqual([]);
  await until("all is delivered", () => new Set(receiver.eventIds).size === history.length);
  expect([...new Set(receiver.eventIds)]).toEqual(history.map(({ eventId }) => eventId));
});

const KEY = randomBytes(32);

const box = createSecretBox({ current: KEY });

const READERS = 10;

const HITS_MS = isThorough ? 15_000 : 3_000;

let api: ApiProcess;

let dispatcher: DispatcherProcess;

let provider: TestProvider;

let site: number;

let subscription: string;

let token: string;

beforeAll(async () => {
  const { db } = database;
  const [partner] = (await addTenants(db)).partners;
  provider = await addProvider(db, box);
  site = await connectStore(db, partner.accounts[0], { provider });
  ({ subscriptionId: subscription } = await insertSubscription(
    { db, box },
    { partnerId: partner.id, url: receiver.url },
  ));
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
    REDIS_PREFIX: schedule.prefix,
    MASTER_KEY: KEY.toString("base64"),
  };
  api = await ApiProcess.start(env);
  // One connection, so that the statement after a failed one often belongs to another task.
  dispatcher = new DispatcherProcess({ ...env, DISPATCHER_CONNECTIONS: "1" });
  dispatcher.start();
  token = String((await api.login(partner.owner.email, PASSWORD)).body["token"]);
});

afterAll(async () => {
  await dispatcher.stop();
  api.kill();
});
