import { beforeAll, describe, expect, test } from "bun:test";

import { recordAudit } from "../../../src/audit/queries.ts";
import type { RawDb } from "../../../db/client.ts";
import { startApi } from "../../support/api.ts";
import { createFakeClock } from "../../support/clock.ts";
import { fixture } from "../../support/fixture.ts";
import { holding } from "../../support/holding.ts";
import { until } from "../../support/network/receiver.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));

describe("the export of the audit log", () => {
  test("has the rows and fields of the list, oldest first, each with its cursor", async () => {
    const listed = (await api.call("GET", "/partner/audit-log?limit=100", { token: tokens.owner }))
      .body["data"] as Row[];
    const answer = await exported("/partner/audit-log/export", tokens.owner);
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
    expect(answer.text.endsWith("\n")).toBe(true);
    const rows = rowsOf(answer.text);
    expect(rows.slice(0, listed.length)).toEqual(
      listed.toReversed().map((row) => ({ ...row, cursor: expect.any(String) })),
    );
    expect(rows.length).toBeGreaterThan(1);
    const rest = await exported(
      `/partner/audit-log/export?limit=1&after=${rows.at(0)?.cursor}`,
      tokens.owner,
    );
    expect(rowsOf(rest.text)).toEqual(rows.slice(1, 2));
    const end = await exported(
      `/partner/audit-log/export?after=${rows.at(-1)?.cursor}`,
      tokens.owner,
    );
    expect(end.text).toBe("");
  });

  test("has the rows of the partner and its accounts, and for the platform all rows", async () => {
    const [one, two] = tenants.partners;
    const own = new Set([one.id, ...one.accounts.map(({ id }) => id)]);
    await note("theirs", two.owner);
    const partner = rowsOf((await exported("/partner/audit-log/export", tokens.owner)).text);
    expect(partner.filter((row) => !own.has(row.company_id))).toEqual([]);
    const all = rowsOf((await exported("/admin/audit-log/export", tokens.root)).text);
    expect(all.some((row) => row.company_id === two.id)).toBe(true);
  });

  test("writes one row per user and hour, whoever asks at the same time", async () => {
    const { admin } = tenants.partners[0];
    const token = await api.login(admin.email);
    await Promise.all(
      Array.from({ length: 5 }, () => exported("/partner/audit-log/export", token)),
    );
    const written = () => database.db.sql<{ at: Date }[]>`
      select at from audit_log where action = 'AUDIT_EXPORTED' and actor_id = ${admin.id}`;
    expect(await written()).toHaveLength(1);
    await database.db.sql`
      update audit_log set at = at - interval '1 hour'
       where action = 'AUDIT_EXPORTED' and actor_id = ${admin.id}`;
    await exported("/partner/audit-log/export", token);
    expect(await written()).toHaveLength(2);
  });

  test("takes 1 to 1000 rows and its own cursors only", async () => {
    for (const query of ["limit=1", "limit=1000"])
      expect((await exported(`/admin/audit-log/export?${query}`, tokens.root)).status).toBe(200);
    for (const query of ["limit=0", "limit=1001", "after=zz", "after=12"]) {
      const { status, body } = await exported(`/admin/audit-log/export?${query}`, tokens.root);
      expect([status, Object.keys(body["errors"] as object)]).toEqual([
        422,
        [query.split("=")[0] ?? ""],
      ]);
    }
  });

  test("is answered 503, or up to the last certain row, while an earlier row is uncommitted", async () => {
    const start = await lastCursor();
    const commit = await holding(database.db, (tx) =>
      recordAudit(tx, entryOf("late", tenants.partners[0].owner)),
    );
    await note("early", tenants.partners[0].owner);
    const path = `/partner/audit-log/export?after=${start}`;
    const clock = createFakeClock();
    const asked = async (db: RawDb) => {
      const on = await startApi({ db, clock, config: api.deps.config });
      let isAnswered = false;
      const answer = on
        .call("GET", path, { token: tokens.owner })
        .finally(() => (isAnswered = true));
      // The request waits 2 s for the other transaction.
      await until("the answer", () => {
        clock.advance(100);
        return isAnswered;
      });
      return answer;
    };
    const refused = await asked(database.connect());
    expect([refused.status, refused.body["code"]]).toEqual([503, "unavailable"]);
    expect(namesOf(rowsOf((await asked(database.db)).text))).toEqual([]);
    await commit();
    expect(namesOf(rowsOf((await exported(path, tokens.owner)).text))).toEqual(["late", "early"]);
  });
});

interface Row {
  readonly id: number;
  readonly action: string;
  readonly company_id: number;
  readonly cursor: string;
  readonly details: { readonly name?: string };
}

const tokens = { owner: "", account: "", root: "" };

beforeAll(async () => {
  const [one] = tenants.partners;
  tokens.owner = await api.login(one.owner.email);
  tokens.account = await api.login(one.accounts[0].owner.email);
  tokens.root = await api.login(tenants.superAdmin.email);
  await note("first", one.owner);
});

const exported = (path: string, token: string) => api.call("GET", path, { token });

const rowsOf = (text: string): Row[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Row);

const namesOf = (rows: readonly Row[]) => rows.flatMap(({ details }) => details.name ?? []);

async function lastCursor(): Promise<string> {
  const rows = rowsOf((await exported("/partner/audit-log/export", tokens.owner)).text);
  return rows.at(-1)?.cursor ?? "";
}

interface Person {
  readonly id: number;
  readonly companyId: number;
}

const entryOf = (name: string, { id, companyId }: Person) => ({
  at: new Date(),
  action: "TOKEN_ISSUED" as const,
  actor: { userId: id, companyId, impersonatorId: null },
  requestContext: null,
  details: { name },
});

const note = (name: string, person: Person) => recordAudit(database.db, entryOf(name, person));
