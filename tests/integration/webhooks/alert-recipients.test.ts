// Recipients of alerts confirm their address before they get any (contract 6.21).
import { beforeEach, describe, expect, test } from "bun:test";

import { addMs } from "../../../src/lib/clock.ts";
import { type Answer, startApi } from "../../support/api.ts";
import { mailsTo } from "../../support/auth-mails.ts";
import { createFakeClock } from "../../support/clock.ts";
import { fixture } from "../../support/fixture.ts";
import { createDatabase } from "../../support/postgres.ts";
import { addTenants } from "../../support/tenants.ts";

const PATHS = ["/alert-recipients/confirm", "/partner/alerts/confirm"] as const;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MINUTE_MS = 60_000;

const clock = createFakeClock();
const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db, clock }));

let addresses = 0;

describe("a recipient of alerts", () => {
  test("is mailed a link whose code is in the fragment, and is unconfirmed until it is used", async () => {
    const [email, other] = [fresh(), fresh()];
    const made = await update({ recipients: [email, other] });
    expect(made.body).toMatchObject({ recipients: [email, other] });
    expect(made.body["unconfirmed_recipients"]).toEqual([email, other]);
    const { link, mail } = await askedOf(email);
    expect([link.origin + link.pathname, link.search]).toEqual([
      `${api.deps.config.serverRoot}/dashboard/alert-recipient`,
      "",
    ]);
    expect([mail.kind, mail.partnerId, mail.expiresAt]).toEqual([
      "alert_recipient",
      tenants.partners[0].id,
      addMs(clock.now(), 7 * DAY_MS),
    ]);
    const confirmed = await confirm(link);
    expect([confirmed.status, confirmed.body]).toEqual([200, { email }]);
    expect(await unconfirmed()).toEqual([other]);
    expect((await confirm(link)).status).toBe(200);
  });

  test("confirms at the former path by the same code, too", async () => {
    const [email, other] = [fresh(), fresh()];
    await update({ recipients: [email, other] });
    const body = { code: codeOf((await askedOf(email)).link) };
    for (const path of PATHS) {
      const confirmed = await api.call("POST", path, { body });
      expect([path, confirmed.status, confirmed.body]).toEqual([path, 200, { email }]);
      expect(await unconfirmed()).toEqual([other]);
    }
  });

  test("is asked again by an update with the same recipients, and not by any other update", async () => {
    const [email, other] = [fresh(), fresh()];
    await update({ recipients: [email, other] });
    await confirm((await askedOf(other)).link);
    await update({ digest_minutes: 5 });
    expect(await mailsTo(api.deps, email)).toHaveLength(1);
    await update({ recipients: [email, other] });
    expect(await mailsTo(api.deps, email)).toHaveLength(2);
    expect(await mailsTo(api.deps, other)).toHaveLength(1);
  });

  test("that was removed confirms again, and its old link is refused while it is no recipient", async () => {
    const email = fresh();
    await update({ recipients: [email] });
    const { link } = await askedOf(email);
    await confirm(link);
    await update({ recipients: null });
    expect(refusalOf(await confirm(link))).toEqual([400, "invalid_code"]);
    await update({ recipients: [email] });
    expect(await unconfirmed()).toEqual([email]);
  });

  test("confirms until the last millisecond of the seventh day", async () => {
    const [email, late] = [fresh(), fresh()];
    await update({ recipients: [email, late] });
    const links = [(await askedOf(email)).link, (await askedOf(late)).link] as const;
    clock.advance(7 * DAY_MS - 1);
    expect((await confirm(links[0])).status).toBe(200);
    clock.advance(1);
    expect(refusalOf(await confirm(links[1]))).toEqual([400, "invalid_code"]);
  });

  test("stays confirmed when several confirm at the same time", async () => {
    const all = Array.from({ length: 10 }, fresh);
    await update({ recipients: all });
    const links = await Promise.all(all.map(async (one) => (await askedOf(one)).link));
    const statuses = await Promise.all(links.map(async (link) => (await confirm(link)).status));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(await unconfirmed()).toEqual([]);
  });

  test("is not confirmed by a code that names another partner, address or end", async () => {
    const [email, other] = [fresh(), fresh()];
    await update({ recipients: [email, other] });
    const [partnerId, , endsAt, mac] = readCode((await askedOf(email)).link);
    await update({ recipients: [email] }, 1);
    const forged = [
      [tenants.partners[1].id, email, endsAt, mac],
      [partnerId, other, endsAt, mac],
      [partnerId, email, Number(endsAt) + 1, mac],
      [partnerId, email, endsAt, "0".repeat(64)],
      [partnerId, email, endsAt],
      { partnerId, email },
    ];
    const codes = forged.map((one) => Buffer.from(JSON.stringify(one)).toString("base64url"));
    for (const code of [...codes, "x", "e30"]) {
      for (const path of PATHS) {
        const refused = await api.call("POST", path, { body: { code } });
        expect([path, code, ...refusalOf(refused)]).toEqual([path, code, 400, "invalid_code"]);
      }
    }
    expect(await unconfirmed()).toEqual([email, other]);
  });
});

describe("mails that ask to confirm", () => {
  test("are limited to three a minute for an address, whichever partner asks, and nothing is changed beyond", async () => {
    const email = fresh();
    for (const partner of [0, 1, 0] as const) await update({ recipients: [email] }, partner);
    await update({ recipients: null }, 1);
    const refused = await update({ recipients: [email] }, 1);
    expect([...refusalOf(refused), refused.headers.get("retry-after")]).toEqual([
      429,
      "rate_limited",
      "60",
    ]);
    expect((await settings(1)).body["recipients"]).toBeNull();
    clock.advance(MINUTE_MS);
    expect((await update({ recipients: [email] }, 1)).status).toBe(200);
    expect(await mailsTo(api.deps, email)).toHaveLength(4);
  });

  test("are limited to a hundred an hour of a partner", async () => {
    for (let asked = 0; asked < 100; asked += 10)
      await update({ recipients: Array.from({ length: 10 }, fresh) });
    expect(refusalOf(await update({ recipients: [fresh()] }))).toEqual([429, "rate_limited"]);
    expect((await update({ recipients: [fresh()] }, 1)).status).toBe(200);
    clock.advance(HOUR_MS);
    expect((await update({ recipients: [fresh()] })).status).toBe(200);
  });
});

beforeEach(() => clock.advance(DAY_MS));

const fresh = () => `recipient-${(addresses += 1)}@elsewhere.test`;

const refusalOf = ({ status, body }: Answer) => [status, body["code"]];

type PartnerIndex = 0 | 1;

const tokenOf = (index: PartnerIndex) => api.login(tenants.partners[index].owner.email);

async function update(body: Record<string, unknown>, index: PartnerIndex = 0): Promise<Answer> {
  return api.call("PATCH", "/partner/alerts", { token: await tokenOf(index), body });
}

async function settings(index: PartnerIndex = 0): Promise<Answer> {
  return api.call("GET", "/partner/alerts", { token: await tokenOf(index) });
}

async function unconfirmed(): Promise<unknown> {
  return (await settings()).body["unconfirmed_recipients"];
}

async function askedOf(email: string) {
  const mail = (await mailsTo(api.deps, email)).at(-1);
  const address = /^Confirm this address:\n {4}(\S+)$/m.exec(mail?.text ?? "")?.[1];
  if (mail === undefined || address === undefined) throw new Error(`${email} was not asked.`);
  return { mail, link: new URL(address) };
}

const codeOf = (link: URL) => new URLSearchParams(link.hash.slice(1)).get("code") ?? "";

function readCode(link: URL): readonly unknown[] {
  const given: unknown = JSON.parse(Buffer.from(codeOf(link), "base64url").toString());
  return Array.isArray(given) ? given : [];
}

const confirm = (link: URL) => api.call("POST", PATHS[0], { body: { code: codeOf(link) } });
