import { beforeAll, expect, test } from "bun:test";

import { saveUse, keepNewestUses, USES_KEPT } from "../../../src/auth/tokens/use-queries.ts";
import { isoInstant } from "../../../src/lib/clock.ts";
import { until } from "../../support/network/receiver.ts";
import { startSerialApi } from "../../support/serial-api.ts";
import { startWebhooks } from "../../support/webhooks.ts";
import { fixture } from "../../support/fixture.ts";

// Tests the list of uses of a partner's tokens (contract 10.5).

const world = fixture(() => startWebhooks({ config: { trustedProxies: ["127.0.0.1"] } }));

test("shows by route and address where a token was used, and when last", async () => {
  const { id } = await world.subscribe();
  await useFrom("192.0.2.1", `/partner/webhooks/${id}`);
  await useFrom("192.0.2.1", `/partner/webhooks/${id}`);
  await useFrom("192.0.2.2", "/partner/webhooks");
  await until("both are written", async () => (await usesOf()).length === 2);
  const [first] = await tokens();
  expect(first).toMatchObject({
    kind: "dashboard_pat",
    user_name: `Name of ${world.tenants.partners[0].admin.email}`,
  });
  const pairs = (await usesOf()).map(({ route, ip }) => `${ip} ${route}`);
  expect(pairs.toSorted()).toEqual([
    "192.0.2.1 GET /partner/webhooks/:id",
    "192.0.2.2 GET /partner/webhooks",
  ]);
  expect(JSON.stringify(await tokens())).not.toContain(pat);
});

test("writes the same pair again after a minute, and not earlier", async () => {
  const serial = await startSerialApi(world);
  const lastUse = async () => {
    const headers = { "X-Forwarded-For": "192.0.2.2" };
    await serial.call("GET", "/partner/webhooks", { token: pat, headers });
    await serial.settled();
    return (await usesOf()).find(({ ip }) => ip === "192.0.2.2")?.last_used_at;
  };
  world.clock.advance(60_000);
  const first = await lastUse();
  expect(first).toBe(isoInstant(world.clock.now()));
  world.clock.advance(59_999);
  expect(await lastUse()).toBe(first);
  world.clock.advance(1);
  expect(await lastUse()).toBe(isoInstant(world.clock.now()));
  await serial.stop();
});

test("keeps the 100 newest pairs of a token", async () => {
  const { db } = world.database;
  const [row] = await db.sql<
    { jti: string }[]
  >`select jti from tokens where kind = 'dashboard_pat'`;
  const jti = row?.jti ?? "";
  const kept = async () => {
    const rows = await db.sql<{ ip: string }[]>`
      select ip from token_uses where jti = ${jti} order by last_used_at`;
    return rows.map(({ ip }) => ip);
  };
  await db.sql`delete from token_uses`;
  const at = (n: number) => new Date(world.clock.now().getTime() + n);
  await db.sql`
    insert into token_uses (jti, route, ip, first_used_at, last_used_at)
    select ${jti}::text, 'GET /x', 'a' || n, ${at(0)}::timestamptz,
           ${at(0)}::timestamptz + n * interval '1 ms'
      from generate_series(1, ${USES_KEPT}::int) n`;
  await keepNewestUses(db, jti);
  expect(await kept()).toHaveLength(USES_KEPT);
  expect(await saveUse(db, { jti, route: "GET /x", ip: "a1", at: at(200) })).toBe(false);
  expect(await saveUse(db, { jti, route: "GET /x", ip: "b", at: at(201) })).toBe(true);
  await keepNewestUses(db, jti);
  const left = await kept();
  expect([left.length, left.includes("a1"), left.includes("a2"), left.at(-1)]).toEqual([
    USES_KEPT,
    true,
    false,
    "b",
  ]);
});

test("contains the tokens of the partner's users, with those that act for its accounts, and drops ended ones", async () => {
  const { owner, other, account, root } = world.tokens;
  await world.api.call("POST", "/partner/account-owner/token", {
    token: owner,
    body: { account_id: world.tenants.partners[0].accounts[0].id },
  });
  await world.api.call("POST", "/account/personal-access-tokens", {
    token: account,
    body: { name: "of an account" },
  });
  expect((await tokens()).map(({ kind }) => kind).toSorted()).toEqual([
    "dashboard_pat",
    "impersonation",
  ]);
  expect(await tokens(other)).toEqual([]);
  for (const token of [account, root])
    expect((await world.api.call("GET", "/partner/tokens", { token })).status).toBe(403);
  await world.api.call("DELETE", "/account/api-token", { token: world.tokens.admin });
  const rows = await world.database.db.sql`select 1 from token_uses`;
  expect(rows.length).toBe(0);
});

let pat: string;

beforeAll(async () => {
  const made = await world.api.call("POST", "/account/api-token", {
    token: world.tokens.admin,
    body: {},
  });
  pat = String(made.body["token"]);
});

interface Listed {
  readonly id: string;
  readonly kind: string;
  readonly user_name: string;
  readonly uses: readonly { readonly route: string; readonly ip: string; last_used_at: string }[];
}

async function tokens(token = world.tokens.owner): Promise<Listed[]> {
  const { status, body, text } = await world.api.call("GET", "/partner/tokens", {
    token,
  });
  if (status !== 200) throw new Error(text);
  return body["data"] as Listed[];
}

const useFrom = (ip: string, path: string) =>
  world.api.call("GET", path, { token: pat, headers: { "X-Forwarded-For": ip } });

const usesOf = async () => (await tokens())[0]?.uses ?? [];
