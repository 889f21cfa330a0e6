import { createLeases, type Leases } from "../../dispatcher/shards/lease-queries.ts";
import { createStore, type DispatchStore } from "../../dispatcher/store/store.ts";
import type { RawDb } from "../../db/client.ts";
import { addMs, type Clock } from "../../src/lib/clock.ts";
import type { RecordedAction } from "../../src/outbox/event.ts";
import type { Wake } from "../../src/outbox/schedule.ts";
import type { Answer } from "../support/api.ts";
import { silentLog } from "../support/dispatch.ts";
import { connectStore, created, report, reviewIdOf } from "../support/factory.ts";
import { insertSubscription, record, reviewAction, type Tenant } from "../support/outbox.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { startWebhooks, type WebhookWorld, type Who } from "../support/webhooks.ts";
import { postgresTables } from "./postgres-tables.ts";
import type { TablesState } from "./tables.ts";
import {
  BATCH_HOUR_MS,
  Names,
  PARTNERS,
  REVIEWS,
  type NewEvent,
  type NewSubscription,
  type Partner,
  type TestedStore,
} from "./tested-store.ts";

/** The users who may change the subscriptions of a partner. */
const ACTING: readonly Who[] = ["owner", "other"];
/** A real database with two partners, and the API on it. */
export interface Postgres {
  /** Returns the same database with an empty outbox. */
  empty(): Promise<TestedStore>;
  stop(): Promise<void>;
}

export async function startPostgres(): Promise<Postgres> {
  const opened = Promise.withResolvers<RawDb>();
  const world = await startWebhooks({
    config: { batchHourMs: BATCH_HOUR_MS },
    open: async (database) => {
      opened.resolve(await withClock(database));
      return opened.promise;
    },
  });
  const db = await opened.promise;
  const tenants = [await tenantOf(world, 0), await tenantOf(world, 1)];
  return {
    async empty() {
      await emptyTables(db);
      await setClock(db, world.clock.now());
      return new PostgresStore(world, db, tenants);
    },
    stop: () => world.stop(),
  };
}

/** Connects with a `now()` that returns the time which the test has set, because leases and retries use PostgreSQL's. */
async function withClock({ db, connect }: TestDatabase): Promise<RawDb> {
  await db.sql.unsafe(`
    create schema test;
    create table test.clock (now timestamptz(3) not null);
    insert into test.clock values (now());
    create function test.now() returns timestamptz language sql stable as 'select now from test.clock'`);
  return connect("test, pg_catalog, public");
}

async function setClock({ sql }: RawDb, now: Date): Promise<void> {
  await sql`update test.clock set now = ${now}`;
}

async function tenantOf(world: WebhookWorld, partner: 0 | 1): Promise<Tenant> {
  const { db } = world.database;
  const [account] = world.tenants.partners[partner].accounts;
  const { provider } = world;
  const siteId = await connectStore(db, account, { provider, store: 1 });
  const reviewIds: number[] = [];
  for (let review = 0; review < REVIEWS; review++) {
    const external = `conformance-${partner}-${review}`;
    await report(world.api, provider, [created(siteId, external)]);
    reviewIds.push(await reviewIdOf(db, external));
  }
  return {
    partnerId: account.partnerId,
    accountId: account.id,
    storeId: account.storeIds[1] ?? 0,
    storeReviewSiteId: siteId,
    reviewSiteId: provider.id,
    reviewIds,
  };
}

async function emptyTables({ sql }: RawDb): Promise<void> {
  await sql`
    truncate webhook_subscriptions, review_history, outbox, outbox_offsets, outbox_skips, delivery_attempts cascade`;
  await sql`delete from dispatchers`;
  await sql`update shards set epoch = 0, unclean = false`;
}

class PostgresStore implements TestedStore {
  readonly store: DispatchStore;
  readonly leases: Leases;
  readonly subscriptions = new Names<string>();
  readonly events = new Names<string>();
  readonly reviews = new Names<number>();
  readonly startMs: number;
  readonly #world: WebhookWorld;
  readonly #db: RawDb;
  readonly #tenants: readonly Tenant[];
  readonly #shards = new Map<string, number>();
  readonly #acting = new Map<string, Who>();

  constructor(world: WebhookWorld, db: RawDb, tenants: readonly Tenant[]) {
    this.#world = world;
    this.#db = db;
    this.#tenants = tenants;
    this.startMs = world.clock.now().getTime();
    const { clock } = world;
    const config = { batchHourMs: BATCH_HOUR_MS };
    this.store = createStore({ db, clock, box: world.api.deps.box, log: silentLog, config });
    this.leases = createLeases(db, db);
    for (const partner of PARTNERS)
      this.#tenant(partner).reviewIds.forEach((id, review) =>
        this.reviews.set(`p${partner} r${review}`, id),
      );
  }

  get clock(): Clock {
    return this.#world.clock;
  }

  now(): Date {
    return this.#world.clock.now();
  }

  monotonicMs(): number {
    return this.#world.clock.monotonicMs();
  }

  shardOf(name: string): number {
    return this.#shards.get(name) ?? 0;
  }

  async pass(ms: number): Promise<void> {
    this.#world.clock.advance(ms);
    await setClock(this.#db, this.now());
  }

  settle<T>(work: Promise<T>): Promise<T> {
    return work;
  }

  async create(subscription: NewSubscription): Promise<void> {
    const { name, partner, kind, ordering, shard, failures, intervalHours } = subscription;
    const { sequenceHeaders } = subscription;
    const nextAt = addMs(this.now(), intervalHours * BATCH_HOUR_MS);
    const { subscriptionId } = await insertSubscription(
      { db: this.#db, box: this.#world.api.deps.box },
      {
        partnerId: this.#tenant(partner).partnerId,
        url: "http://127.0.0.1:3699/hook",
        ordering,
        failures,
        ...(kind === "batch" && { batch: { intervalHours, nextAt } }),
      },
    );
    await this.#db.sql`
      update webhook_subscriptions set shard = ${shard}, sequence_headers = ${sequenceHeaders}
       where id = ${subscriptionId}`;
    this.subscriptions.set(name, subscriptionId);
    this.#shards.set(name, shard);
    this.#acting.set(name, ACTING[partner] ?? "owner");
  }

  append(events: readonly NewEvent[]): Promise<readonly Wake[]> {
    const actions = events.map((event) => {
      const action = actionOf(this.#tenant(event.partner), event.review);
      this.events.set(event.name, action.eventId);
      return action;
    });
    return record(this.#db, actions, this.now());
  }

  async sendTest(name: string, event: string): Promise<boolean> {
    const { status, body } = await this.#ask("POST", name, "/test");
    if (status === 202) this.events.set(event, String(body["event_id"]));
    return status === 202;
  }

  async redeliver(name: string, event: string): Promise<boolean> {
    const path = `/deliveries/${this.events.idOf(event)}/redeliver`;
    return (await this.#ask("POST", name, path)).status === 202;
  }

  enable(name: string, held: "deliver" | "skip"): Promise<void> {
    return this.#insist("POST", name, "/enable", { held });
  }

  remove(name: string): Promise<void> {
    return this.#insist("DELETE", name, "");
  }

  reorder(name: string, ordering: "subscription" | "review"): Promise<void> {
    return this.#insist("POST", name, "", { ordering });
  }

  renumber(name: string, sequenceHeaders: boolean): Promise<void> {
    return this.#insist("POST", name, "", { sequence_headers: sequenceHeaders });
  }

  tables(): Promise<TablesState> {
    return postgresTables(this.#db, this);
  }

  #tenant(partner: Partner): Tenant {
    const tenant = this.#tenants[partner];
    if (tenant === undefined) throw new Error(`There is no partner ${partner}.`);
    return tenant;
  }

  #ask(method: string, name: string, path: string, body?: unknown): Promise<Answer> {
    const as = this.#acting.get(name) ?? "owner";
    return this.#world.ask(method, `/${this.subscriptions.idOf(name)}${path}`, { as, body });
  }

  async #insist(method: string, name: string, path: string, body?: unknown): Promise<void> {
    const { status, text } = await this.#ask(method, name, path, body);
    if (status >= 300) throw new Error(`The API answered ${status}: ${text}`);
  }
}

function actionOf(tenant: Tenant, review: number | null): RecordedAction {
  if (review !== null) return reviewAction(tenant, { reviewId: tenant.reviewIds[review] ?? 0 });
  return {
    ...reviewAction(tenant),
    event: "review_pull_connected",
    reviewId: null,
    about: {
      site: {
        store: { id: tenant.storeId },
        review_site: {
          store_review_site_id: tenant.storeReviewSiteId,
          review_site_id: tenant.reviewSiteId,
          name: "Site",
          connection_status: "connected",
          disconnect_reason: null,
        },
        axis: "pull",
        error_code: null,
        reason: null,
      },
    },
  };
}
