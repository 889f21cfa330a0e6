// Limits of the mails that an invitation sends, and of the invitations of a partner (contract 4.22).
import { beforeAll, expect, test } from "bun:test";

import { addMs } from "../../../src/lib/clock.ts";
import { startApi } from "../../support/api.ts";
import { mailsTo } from "../../support/auth-mails.ts";
import { createFakeClock } from "../../support/clock.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const clock = createFakeClock();
const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db, clock }));

let root: string;
let owner: string;
let people = 0;

beforeAll(signIn);

test("an address is mailed three invitations a minute and ten a day, whoever asks for them", async () => {
  const email = "again@p1.test";
  const made = await invite({ email });
  const again = (as = owner, area = "/partner") =>
    outcomeOf(api.call("POST", `${area}/users/${String(made.body["id"])}/invite`, { token: as }));
  expect([await again(), await again()]).toEqual([200, 200]);
  expect(await again()).toEqual([429, "rate_limited", "60"]);
  expect(await again(root, "/admin")).toEqual([429, "rate_limited", "60"]);
  for (let sent = 3; sent < 10; sent++) {
    clock.advance(MINUTE_MS);
    expect(await again()).toBe(200);
  }
  clock.advance(MINUTE_MS);
  expect(await again(root, "/admin")).toEqual([429, "rate_limited", String(24 * 3_600 - 8 * 60)]);
  expect(await mailsTo(api.deps, email)).toHaveLength(10);
  // The first three mails are a day old then.
  clock.advance(24 * HOUR_MS - 8 * MINUTE_MS);
  await signIn();
  expect([await again(), await again()]).toEqual([200, 200]);
});

test("of 20 parallel repeats three are mailed", async () => {
  const made = await invite({ email: "crowd@p1.test" });
  const path = `/partner/users/${String(made.body["id"])}/invite`;
  const all = await Promise.all(
    Array.from({ length: 20 }, () => outcomeOf(api.call("POST", path, { token: owner }))),
  );
  expect(all.filter((one) => one === 200)).toHaveLength(2);
  expect(await mailsTo(api.deps, "crowd@p1.test")).toHaveLength(3);
});

test("a partner has at most 200 open invitations, and one that ends leaves room", async () => {
  const { id: companyId } = tenants.partners[0];
  const until = addMs(clock.now(), MINUTE_MS);
  await database.db.sql`delete from invitations`;
  await database.db.sql`
    with made as (
      insert into users (company_id, email, name, role, created_at, updated_at)
      select ${companyId}, 'waits-' || n || '@p1.test', 'Waits', 'partner_admin', now(), now()
        from generate_series(1, 199) n returning id)
    insert into invitations (user_id, code_hash, created_at, expires_at)
    select id, id::text, now(), ${until}::timestamptz from made`;
  const both = await Promise.all([outcomeOf(invite()), outcomeOf(invite())]);
  expect(both.map((one) => (Array.isArray(one) ? one[1] : one)).toSorted()).toEqual([
    201,
    "limit_reached",
  ]);
  const { id } = tenants.partners[1];
  const body = { company_id: id, email: "by-operator@p2.test", name: "New", role: "partner_admin" };
  expect(await outcomeOf(api.call("POST", "/admin/users", { token: root, body }))).toBe(201);
  clock.advance(MINUTE_MS);
  expect(await outcomeOf(invite())).toBe(201);
});

test("a partner invites at most 100 people an hour", async () => {
  clock.advance(HOUR_MS);
  await signIn();
  for (let sent = 0; sent < 100; sent++) expect(await outcomeOf(invite())).toBe(201);
  expect(await outcomeOf(invite())).toEqual([429, "rate_limited", "3600"]);
  clock.advance(HOUR_MS);
  expect(await outcomeOf(invite())).toBe(201);
});

async function signIn(): Promise<void> {
  owner = await api.login(tenants.partners[0].owner.email);
  root = await api.login(tenants.superAdmin.email);
}

function invite(fields: Readonly<Record<string, unknown>> = {}) {
  const body = { name: "New", email: `mate-${++people}@p1.test`, role: "partner_admin", ...fields };
  return api.call("POST", "/partner/users", { token: owner, body });
}

/** Returns the status of an answer, with code and `Retry-After` if it is a refusal. */
async function outcomeOf(answer: ReturnType<typeof invite>) {
  const { status, body, headers } = await answer;
  return status < 300 ? status : [status, body["code"], headers.get("retry-after")];
}
