// `bun run bench locks` measures how long reports about other accounts wait while an account is deleted: without other
// locks, while a dump locks every table, and while a session locks rows of the account's partner.
//   --events N (5000): events of the account; --hold S (20): time in s for which the other session keeps its locks;
//   --clients N (16); --tree PATH: the checkout that runs
import { resolve } from "node:path";
import { parseArgs } from "node:util";

import { connect } from "../../db/client.ts";
import { ROOT } from "../install/install.ts";
import { subscribe } from "./backlog.ts";
import { quantile, round } from "./figures.ts";
import { asFastAs } from "./offer.ts";
import { numberOf } from "./options.ts";
import { prepare } from "./requests.ts";
import { commitOf, withRig, writeResult, type Rig } from "./rig.ts";
import { addPartners, addProvider, insertUsers, type Sign } from "./tenants.ts";

const { values } = parseArgs({
  options: {
    events: { type: "string", default: "5000" },
    hold: { type: "string", default: "20" },
    clients: { type: "string", default: "16" },
    tree: { type: "string", default: ROOT },
  },
});
const EVENTS = numberOf("--events", values.events);
const HOLD_S = numberOf("--hold", values.hold);
const CLIENTS = numberOf("--clients", values.clients);
/** Upper bound of the requests per second that the clients can send. */
const REQUESTS_PER_S = 1_500;
const PARTNERS = 100;
/** Maximum delay of a report in ms by contract 10.8. */
const BOUND_MS = 200;

const SCENARIOS = {
  "no deletion": undefined,
  deletion: "select 1",
  "deletion, dump": `do $$ declare t regclass; begin
    for t in select oid from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace loop
      execute format('lock table %s in access share mode', t);
    end loop; end $$`,
  "deletion, held rows": "select from outbox_offsets for no key update",
} as const;

const env = { RATE_LIMITS: "off", LOG_LEVEL: "error" };
await withRig({ tree: resolve(values.tree), env }, async (rig) => {
  await rig.start("api");
  const sign = await addProvider(rig);
  const sites = await addPartners(rig.db, PARTNERS);
  const partners = sites.map(({ partnerId }) => partnerId);
  await subscribe(
    rig.db,
    rig.masterKey,
    sites.map(() => "http://127.0.0.1:9/"),
    partners,
  );
  await insertUsers(rig.db, partners.slice(0, 1));
  await rig.start("dispatcher");
  const rows = [];
  for (const [name, held] of Object.entries(SCENARIOS))
    rows.push(await measure(rig, sign, { name, held, sites }));
  console.log(`${commitOf(resolve(values.tree))}, ${CLIENTS} clients, ${EVENTS} events deleted.\n`);
  console.log("| Scenario | Requests | Refused | p50 | p99 | Longest | Over the bound | Deleted |");
  console.log("|---|---|---|---|---|---|---|---|");
  for (const one of rows)
    console.log(
      `| ${one.name} | ${one.requests} | ${one.refused} | ${one.p50Ms} ms | ${one.p99Ms} ms | ${one.longestMs} ms | ${one.over} | ${one.isDeleted} |`,
    );
  writeResult("locks", { clients: CLIENTS, events: EVENTS, results: rows });
});
process.exit(0);

interface Scenario {
  readonly name: string;
  readonly held: string | undefined;
  readonly sites: Awaited<ReturnType<typeof addPartners>>;
}

async function measure(rig: Rig, sign: Sign, { name, held, sites }: Scenario) {
  const key = name.replaceAll(/\W+/g, "_");
  const leaving = held === undefined ? undefined : await addLeaving(rig, sign, { key, sites });
  // Every second report is about another account of the same partner, because the deletion locks the partner's
  // sequences.
  const [first, ...rest] = sites;
  const others = rest.flatMap((one) => [first ?? one, one]);
  const given = { name: `other_${key}`, count: REQUESTS_PER_S * HOLD_S, perRequest: 1 };
  const requests = prepare(sign, others, given);
  const holder = connect(rig.stores.databaseUrl, { max: 1, name: "bench-holder" });
  const ended = Promise.withResolvers<void>();
  const holding = holder.transaction(async (tx) => {
    await tx.sql.unsafe("set local idle_in_transaction_session_timeout = 0");
    await tx.sql.unsafe(held ?? "select 1");
    if (leaving !== undefined) await beginDeletion(rig, leaving);
    await ended.promise;
  });
  const offered = await asFastAs(rig.root, requests, { clients: CLIENTS, ms: HOLD_S * 1_000 });
  ended.resolve();
  await holding;
  await holder.close();
  const waits = Array.from(
    { length: offered.count },
    (_, n) => (offered.answeredAt[n] ?? 0) - (offered.sentAt[n] ?? 0),
  );
  const left =
    leaving === undefined ? [] : await rig.db.sql`select from companies where id = ${leaving}`;
  // Cancels the deletion of this scenario, so that it does not affect the next one.
  if (leaving !== undefined)
    await rig.db.sql`delete from company_deletions where company_id = ${leaving}`;
  return {
    name,
    requests: offered.count,
    refused: offered.refused,
    p50Ms: round(quantile(waits, 0.5), 1),
    p99Ms: round(quantile(waits, 0.99), 1),
    longestMs: round(waits.reduce((most, wait) => Math.max(most, wait), 0)),
    over: waits.filter((wait) => wait > BOUND_MS).length,
    isDeleted: leaving !== undefined && left.length === 0,
  };
}

/** Adds an account with events to the first partner, in addition to the account that stays. Returns its id. */
async function addLeaving(
  { db, root }: Rig,
  sign: Sign,
  { key, sites }: Pick<Scenario, "sites"> & { readonly key: string },
): Promise<number> {
  const [row] = await db.sql<{ account: number; siteId: number }[]>`
    with accounts as (
      insert into companies (type, name, partner_id, plan_id, primary_color, created_at, is_active)
      select type, ${key}, partner_id, plan_id, primary_color, now(), true from companies
       where type = 'account' and partner_id = ${sites[0]?.partnerId ?? 0} order by id limit 1
      returning id, partner_id
    ), places as (
      insert into stores (account_id, partner_id, name) select id, partner_id, 'Leaving' from accounts returning *
    )
    insert into store_review_sites (store_id, review_site_id, account_id, partner_id, pull_connected, post_connected)
    select places.id, review_sites.id, account_id, partner_id, true, true from places, review_sites limit 1
    returning account_id as account, id as "siteId"`;
  if (row === undefined) throw new Error("There is no account.");
  const given = { name: `own_${key}`, count: Math.ceil(EVENTS / 500), perRequest: 500 };
  const { refused } = await asFastAs(root, prepare(sign, [row], given), {
    clients: 4,
    ms: Number.POSITIVE_INFINITY,
  });
  if (refused > 0) throw new Error(`${refused} requests were not accepted.`);
  return row.account;
}

/** Makes the deletion of an account due, and starts the job. */
async function beginDeletion({ db }: Rig, account: number): Promise<void> {
  await db.sql`update companies set is_active = false where id = ${account}`;
  await db.sql`
    insert into company_deletions (company_id, state, requested_by, requested_at, due_at)
    select ${account}, 'waiting', min(id), now(), now() from users`;
  await db.sql`update maintenance_jobs set next_at = now() where name = 'deletions'`;
}
