// While a user or the company is not active, links and codes are refused without being used up, and tokens are refused
// (contract 4.3).
import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { randomUUID } from "node:crypto";

import { PASSWORD, startApi, type Answer } from "../support/api.ts";
import { untilSomebodyWaits } from "../support/auth-races.ts";
import { codeSentTo, mailsTo } from "../support/auth-mails.ts";
import { addIntegration } from "../support/callers.ts";
import { fixture } from "../support/fixture.ts";
import {
  addClient,
  authorizeParams,
  CALLBACK,
  credentialsOf,
  newPkce,
  obtainCode,
  postForm,
} from "../support/oauth.ts";
import { createDatabase } from "../support/postgres.ts";
import { Browser, connect, HostileProvider } from "../support/sso.ts";
import { addTenants, type TestUser } from "../support/tenants.ts";

const database = fixture(createDatabase);
const tenants = fixture(() => addTenants(database.db));
const api = fixture(() => startApi({ db: database.db }));

describe("made before its user was switched off", () => {
  test.each(TABLE.map((one) => [one.name, one.of, one.by, one] as const))(
    "%s, of a user of the %s, off by the %s, is refused and not used up",
    async (_name, of, by, { make, refused, lives }) => {
      const user = of === "partner" ? partner.owner : partner.accounts[0].owner;
      const { use, userId = user.id } = await make(user);
      const [kind, id] = {
        user: ["users", userId],
        company: [`${of}s`, user.companyId],
        partner: ["partners", partner.id],
      }[by] as [string, number];
      await turn(kind, id, "deactivate");
      try {
        expect(said(await use())).toEqual([...refused]);
        expect(said(await use())).toEqual([...refused]);
      } finally {
        await turn(kind, id, "activate");
      }
      const after = await use();
      expect([lives, said(after)]).toEqual([lives, lives ? [after.status, ""] : [...refused]]);
    },
  );

  test.each([
    ["an operator's portal link", INVALID],
    ["an invitation", INVALID],
    ["a login", [401, "invalid_credentials"]],
    ["a refresh token", [400, "invalid_grant"]],
  ] as const)("%s that waits for the suspension is refused as after it", async (name, refused) => {
    const user = partner.owner;
    const known = CASES.find((one) => one.name === name);
    const login: Made = { use: () => post("/login", { email: user.email, password: PASSWORD }) };
    const { use, userId = user.id } = (await known?.make(user)) ?? login;
    let waiting: Promise<Answer> | undefined;
    await database.db.transaction(async ({ sql }) => {
      await sql`update companies set is_active = false where id = ${partner.id}`;
      await sql`select from users where id = ${userId} for no key update`;
      waiting = use();
      await untilSomebodyWaits(database.db);
    });
    expect(said((await waiting) ?? (await use()))).toEqual([...refused]);
    await database.db.sql`update companies set is_active = true where id = ${partner.id}`;
    expect((await use()).status).toBe(200);
  });
});

describe("made while the company is off", () => {
  test("is no portal link and no further invitation of a suspended partner, and no mail", async () => {
    const { userId } = await invitation(partner.owner);
    await turn("partners", partner.id, "deactivate");
    try {
      const pages = { pages: ["webhooks"] };
      const link = await ask("POST", `/admin/partners/${partner.id}/portal-links`, pages);
      expect(said(link)).toEqual([409, "company_inactive"]);
      const invited = await ask("POST", `/admin/users/${userId}/invite`, {});
      expect(said(invited)).toEqual([409, "company_inactive"]);
      for (const { email } of [partner.owner, partner.accounts[0].owner]) {
        await database.db.sql`delete from email_code_limits`;
        await database.db.sql`delete from mails`;
        const body = { email, type: "forgot_password" };
        expect((await post("/email-otp/resend", body)).status).toBe(200);
        expect(await mailsTo(api.deps, email)).toEqual([]);
      }
      const started = await new Browser(api).get(startOf(partner.owner));
      expect(said(started)).toEqual([302, "sso_failed"]);
    } finally {
      await turn("partners", partner.id, "activate");
    }
  });

  test("is no token for the owner of a suspended account", async () => {
    const [{ id }] = partner.accounts;
    await turn("accounts", id, "deactivate");
    const token = await api.login(partner.owner.email);
    const body = { account_id: id };
    const made = await api.call("POST", "/partner/account-owner/token", { token, body });
    await turn("accounts", id, "activate");
    expect(said(made)).toEqual([422, "validation_failed"]);
  });
});

/** Something that was made before, and is used later. */
interface Made {
  readonly use: () => Promise<Answer>;
  /** The user whom it is of, if not the given one. */
  readonly userId?: number;
}

/** The switch that turns a user off: the user's own, that of the company, or that of the partner above an account. */
type Switch = "user" | "company" | "partner";

interface Case {
  readonly name: string;
  readonly make: (user: TestUser) => Promise<Made>;
  /** Whose users can have it; all by default. */
  readonly of?: "partner" | "account";
  /** The answer while one of the switches is off. */
  readonly refused: readonly [status: number, said: string];
  /** Whether it works again afterwards; tokens and codes end when somebody is switched off. */
  readonly lives: boolean;
  readonly without?: Switch;
}

const INVALID = [400, "invalid_code"] as const;
const ENDED = [401, "unauthenticated"] as const;

const CASES: readonly Case[] = [
  {
    name: "an operator's portal link",
    of: "partner",
    make: async ({ companyId }) => portal(`/admin/partners/${companyId}/portal-links`, root),
    refused: INVALID,
    lives: true,
  },
  {
    name: "a portal link of the partner's own",
    of: "partner",
    make: async (user) => portal("/partner/portal-links", await api.login(user.email)),
    refused: INVALID,
    lives: false,
  },
  { name: "an invitation", make: invitation, refused: INVALID, lives: true },
  {
    name: "the link of a recipient of alerts",
    of: "partner",
    without: "user",
    make: async (user) => {
      const email = fresh();
      const body = { recipients: [email] };
      const token = await api.login(user.email);
      expect((await api.call("PATCH", "/partner/alerts", { token, body })).status).toBe(200);
      const code = inMail(/#code=([\w-]+)/, await mailsTo(api.deps, email));
      return { use: () => post("/alert-recipients/confirm", { code }) };
    },
    refused: INVALID,
    lives: true,
  },
  {
    name: "a mailed code",
    make: async ({ email }) => {
      const otp = await mailedCode(email);
      return { use: () => post("/email-otp/verify", { email, otp, type: "forgot_password" }) };
    },
    refused: [422, "validation_failed"],
    lives: false,
  },
  {
    name: "the token of a mailed code",
    make: async ({ email }) => {
      const otp = await mailedCode(email);
      const verified = await post("/email-otp/verify", { email, otp, type: "forgot_password" });
      const password = { body: { password: PASSWORD } };
      const token = String(verified.body["token"]);
      return { use: () => api.call("POST", "/reset-password", { token, ...password }) };
    },
    refused: ENDED,
    lives: false,
  },
  {
    name: "a sign-in that waits for a second factor",
    make: async ({ companyId, email }) => {
      const require = (isRequired: boolean) => database.db.sql`
        update companies set require_second_factor = ${isRequired} where id = ${companyId}`;
      await require(true);
      const { body } = await post("/login", { email, password: PASSWORD });
      await require(false);
      const { challenge_token: token } = body["second_factor"] as { challenge_token: string };
      return { use: () => api.call("GET", "/account/second-factors", { token }) };
    },
    refused: ENDED,
    lives: false,
  },
  {
    name: "a sign-in that was begun at the identity provider",
    // Only the provider's answer tells who signs in.
    without: "user",
    make: async (user) => {
      const browser = new Browser(api);
      const callback = await browser.follow(startOf(user), isCallback);
      return { use: () => browser.get(callback) };
    },
    refused: [302, "sso_failed"],
    lives: true,
  },
  {
    name: "the one-time code of a single sign-on",
    make: async (user) => {
      const isEnd = (url: string) => url.includes("code=") && !isCallback(url);
      const end = await new Browser(api).follow(startOf(user), isEnd);
      const code = new URL(end).searchParams.get("code");
      return { use: () => api.call("GET", `/auth/sso/exchange?code=${code}`) };
    },
    refused: INVALID,
    lives: false,
  },
  {
    name: "an authorization code",
    make: async ({ email }) => {
      const pkce = newPkce();
      const code = await obtainCode(api, authorizeParams(client, pkce), email);
      const form = {
        grant_type: "authorization_code",
        code,
        redirect_uri: CALLBACK,
        code_verifier: pkce.verifier,
      };
      return { use: () => postForm(api, "/oauth/token", { ...credentialsOf(client), ...form }) };
    },
    refused: [400, "invalid_grant"],
    lives: false,
  },
  {
    name: "a refresh token",
    make: async ({ email }) => {
      const form = { grant_type: "password", username: email, password: PASSWORD };
      const given = await postForm(api, "/oauth/token", { ...credentialsOf(client), ...form });
      const refresh = {
        grant_type: "refresh_token",
        refresh_token: String(given.body["refresh_token"]),
      };
      return { use: () => postForm(api, "/oauth/token", { ...credentialsOf(client), ...refresh }) };
    },
    refused: [400, "invalid_grant"],
    lives: false,
  },
  {
    name: "a token that acts for the owner of an account",
    of: "account",
    make: async (user) => {
      const token = await api.login(partner.owner.email);
      const body = { account_id: user.companyId };
      const made = await api.call("POST", "/partner/account-owner/token", { token, body });
      return { use: () => verify(String(made.body["access_token"])) };
    },
    refused: ENDED,
    lives: false,
  },
  {
    name: "the token of an integration",
    of: "partner",
    // It is of no user of the administration.
    without: "user",
    make: async ({ email }) => {
      const { token } = await addIntegration(api, await api.login(email));
      return { use: () => verify(token) };
    },
    refused: ENDED,
    lives: false,
  },
  {
    name: "a personal access token of the dashboard",
    make: async ({ email }) => {
      const made = await api.call("POST", "/account/api-token", {
        token: await api.login(email),
        body: {},
      });
      return { use: () => verify(String(made.body["token"])) };
    },
    refused: ENDED,
    lives: false,
  },
];

const SWITCHES: Readonly<Record<"partner" | "account", readonly Switch[]>> = {
  partner: ["user", "company"],
  account: ["user", "company", "partner"],
};

const TABLE = CASES.flatMap((one) =>
  (["partner", "account"] as const).flatMap((of) =>
    one.of === undefined || one.of === of
      ? SWITCHES[of].flatMap((by) => (by === one.without ? [] : [{ ...one, of, by }]))
      : [],
  ),
);

let root: string;
let partner: (typeof tenants.partners)[0];
let client: Awaited<ReturnType<typeof addClient>>;
let provider: HostileProvider;
const connections = new Map<number, string>();

beforeAll(async () => {
  root = await api.login(tenants.superAdmin.email);
  [partner] = tenants.partners;
  client = await addClient(database.db, { firstParty: true });
  provider = await HostileProvider.start();
  for (const { companyId, email } of [partner.owner, partner.accounts[0].owner]) {
    const domains = [email.split("@")[1] ?? ""];
    const wanted = { company_id: companyId, issuer: provider.issuer, domains };
    connections.set(companyId, await connect(api, root, wanted));
  }
});

afterAll(() => provider.stop());

const fresh = () => `${randomUUID()}@fresh.test`;
const isCallback = (url: string) => url.includes("/auth/sso/callback/");

/** Returns the address at which the user signs in at the identity provider, which then names this user. */
function startOf({ companyId, email }: TestUser): string {
  provider.onIdToken = (payload) =>
    void Object.assign(payload, { sub: email, email, email_verified: true });
  const { serverRoot } = api.deps.config;
  return `${serverRoot}/api/v1/auth/sso/redirect?connection=${connections.get(companyId)}`;
}

async function portal(path: string, token: string): Promise<Made> {
  const made = await api.call("POST", path, { token, body: { pages: ["webhooks"] } });
  const { pathname, hash } = new URL(String(made.body["url"]));
  const body = { code: hash.slice("#code=".length) };
  return { use: () => api.call("POST", `${pathname}/session`, { body }) };
}

async function invitation({ companyId, role }: TestUser): Promise<Made> {
  const email = fresh();
  const made = await ask("POST", "/admin/users", {
    company_id: companyId,
    email,
    name: "Invited",
    role: role === "partner_owner" ? "partner_admin" : role,
  });
  const code = inMail(/invitation=([\w-]+)/, await mailsTo(api.deps, email));
  return {
    use: () => post("/auth/invitation", { code, password: PASSWORD }),
    userId: Number(made.body["id"]),
  };
}

async function mailedCode(email: string): Promise<string> {
  // The cooldown between two codes of an email is none of this test.
  await database.db.sql`delete from email_code_limits`;
  await post("/email-otp/resend", { email, type: "forgot_password" });
  return codeSentTo(api.deps, email);
}

function inMail(pattern: RegExp, mails: Awaited<ReturnType<typeof mailsTo>>): string {
  const found = pattern.exec(mails.at(-1)?.text ?? "")?.[1];
  if (found === undefined) throw new Error("There is no such link in the mail.");
  return found;
}

async function turn(kind: string, id: number, to: "activate" | "deactivate"): Promise<void> {
  expect((await ask("POST", `/admin/${kind}/${id}/${to}`, {})).status).toBe(200);
}

const ask = (method: string, path: string, body: unknown) =>
  api.call(method, path, { token: root, body });
const post = (path: string, body: unknown) => api.call("POST", path, { body });
const verify = (token: string) => api.call("GET", "/verify-token", { token });

/** Returns the status of an answer, and the code of its error; empty if there is none. */
function said({ status, body, headers }: Answer): [number, string] {
  const place = headers.get("location");
  const inPlace = place === null ? null : new URL(place).searchParams.get("error");
  const code = inPlace ?? body["code"] ?? body["error"];
  return [status, typeof code === "string" ? code : ""];
}
