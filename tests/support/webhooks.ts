import { ulid } from "ulid";
import type { RawDb } from "../../db/client.ts";

import { addMs } from "../../src/lib/clock.ts";
import type { Config } from "../../src/lib/config.ts";
import type { SecretBox } from "../../src/lib/secrets.ts";
import type { Wake, Waker } from "../../src/outbox/schedule.ts";
import { startApi, type Answer, type TestApi } from "./api.ts";
import { createFakeClock, type FakeClock } from "./clock.ts";
import { addProvider, connectStore, created, report, type TestProvider } from "./factory.ts";
import { forgetQueue } from "./outbox.ts";
import { createDatabase, type TestDatabase } from "./postgres.ts";
import { addTenants, type Tenants } from "./tenants.ts";

export const HOUR_MS = 1_000;

export type Who = "owner" | "admin" | "other" | "account" | "location" | "root";

/** The API with two partners, a provider that reports reviews of the first, and a token for each kind of user. */
export interface WebhookWorld {
  readonly database: TestDatabase;
  readonly api: TestApi;
  readonly clock: FakeClock;
  readonly tenants: Tenants;
  readonly tokens: Readonly<Record<Who, string>>;
  readonly provider: TestProvider;
  /** The id of a store review site of the first partner, to which the provider reports. */
  readonly siteId: number;
  /** The ids of the subscriptions that the API woke, in order; "mail" for the mailer. */
  readonly wakes: string[];
  /** Sends a request below `/partner/webhooks`, by default as the owner of the first partner. */
  ask(method: string, path: string, options?: { body?: unknown; as?: Who }): Promise<Answer>;
  /** Creates a subscription of the first partner, after deleting the one of the same kind (there may be only one). */
  subscribe(fields?: Readonly<Record<string, unknown>>): Promise<{ id: string; secret: string }>;
  /** Reports `count` new reviews of the first partner; answers their event ids. */
  emit(count: number): Promise<string[]>;
  audit(action: string): Promise<readonly Record<string, unknown>[]>;
  stop(): Promise<void>;
}

export async function startWebhooks(
  options: {
    config?: Partial<Config>;
    schedule?: Waker;
    box?: SecretBox;
    /** Opens the connections of the API. By default they are those of the test. */
    open?: (database: TestDatabase) => Promise<RawDb>;
  } = {},
): Promise<WebhookWorld> {
  const database = await createDatabase();
  const db = await (options.open?.(database) ?? database.db);
  const tenants = await addTenants(db);
  const clock = createFakeClock();
  const wakes: string[] = [];
  const schedule: Waker = {
    async wake(some: readonly Wake[]) {
      wakes.push(...some.map(({ subscriptionId }) => subscriptionId));
      await options.schedule?.wake(some);
    },
    wakeMailer() {
      wakes.push("mail");
      options.schedule?.wakeMailer();
    },
  };
  const api = await startApi({
    db,
    clock,
    schedule,
    ...(options.box && { box: options.box }),
    config: { batchHourMs: HOUR_MS, ...options.config },
  });
  const [one, two] = tenants.partners;
  const tokens = {
    owner: await api.login(one.owner.email),
    admin: await api.login(one.admin.email),
    other: await api.login(two.admin.email),
    account: await api.login(one.accounts[0].owner.email),
    location: await api.login(one.accounts[0].locationUser.email),
    root: await api.login(tenants.superAdmin.email),
  };
  const provider = await addProvider(db, api.deps.box);
  const siteId = await connectStore(db, one.accounts[0], { provider });
  const ask: WebhookWorld["ask"] = (method, path, { body, as = "owner" } = {}) =>
    api.call(method, `/partner/webhooks${path}`, { token: tokens[as], body });
  let reviews = 0;
  return {
    database,
    api,
    clock,
    tenants,
    tokens,
    provider,
    siteId,
    wakes,
    ask,
    async subscribe(fields = {}) {
      const body = {
        label: "Test",
        webhook_url: "http://127.0.0.1:3699/hook",
        delivery_kind: "immediate",
        ...fields,
      };
      const { body: list } = await ask("GET", "");
      for (const held of list["data"] as { id: string; delivery_kind: string }[])
        if (held.delivery_kind === body.delivery_kind) await ask("DELETE", `/${held.id}`);
      const made = await ask("POST", "", { body });
      if (made.status !== 201) throw new Error(`The create was answered ${made.text}`);
      wakes.length = 0;
      return { id: String(made.body["id"]), secret: String(made.body["secret"]) };
    },
    async emit(count) {
      const [last] = await db.sql<
        { id: number | null }[]
      >`select max(id) as id from review_history`;
      for (let i = 0; i < count; i++)
        await report(api, provider, [created(siteId, `emitted-${++reviews}`)]);
      const rows = await db.sql<{ eventId: string }[]>`
        select event_id as "eventId" from review_history
         where id > ${last?.id ?? 0} and event = 'review_received' order by id`;
      return rows.map((row) => row.eventId);
    },
    audit: (action) => db.sql`
      select details - 'token' as details, actor_id as actor from audit_log
       where action = ${action} order by id`,
    async stop() {
      await api.stop();
      await database.drop();
    },
  };
}

/** Makes a service with a token that is valid for 30 days. */
export async function addService(
  { api, clock, tokens }: Pick<WebhookWorld, "api" | "clock" | "tokens">,
  scopes: readonly string[] = ["actions:write"],
  partnerIds: readonly number[] | null = null,
): Promise<{ id: number; token: string }> {
  const post = async (path: string, body: object) => {
    const made = await api.call("POST", `/admin/services${path}`, { token: tokens.root, body });
    if (made.status !== 201) throw new Error(`The service was answered ${made.text}`);
    return made.body;
  };
  const id = Number((await post("", { name: "Service", scopes, partner_ids: partnerIds }))["id"]);
  const expires_at = addMs(clock.now(), 30 * 86_400_000).toISOString();
  const issued = await post(`/${id}/tokens`, { name: "Token", expires_at });
  return { id, token: String(issued["access_token"]) };
}

/** Ends each queued event of a subscription with one final attempt, as the dispatcher does at the end of a round. */
export async function settle(
  { database: { db } }: Pick<WebhookWorld, "database">,
  subscriptionId: string,
  outcome: "delivered" | "failed",
): Promise<void> {
  const queued = await db.sql<{ sequence: number }[]>`
    select sequence from queued_entries where subscription_id = ${subscriptionId} order by sequence`;
  for (const { sequence } of queued)
    await db.sql`
      insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
        duration_ms, outcome, request_headers, request_body, response_truncated, payload_mode, batch_job_id, recorded_at)
      select ${ulid()}, subscription_id, sequence, event_id, event, round, attempt, now(), 1, ${outcome}, '{}', '{}', false,
             payload_mode, batch_job_id, recorded_at
        from queued_entries where subscription_id = ${subscriptionId} and sequence = ${sequence}`;
  await forgetQueue(db, subscriptionId);
}

export async function disable(
  { database, clock }: Pick<WebhookWorld, "database" | "clock">,
  subscriptionId: string,
): Promise<void> {
  await database.db.sql`
    update webhook_subscriptions
       set state = 'disabled', disabled_at = ${clock.now()}, disabled_reason = 'consecutive_failures',
           consecutive_failure_count = 20
     where id = ${subscriptionId}`;
}
