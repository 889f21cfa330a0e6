import { afterAll, beforeAll, expect, test } from "bun:test";
import type { IncomingMessage, ServerResponse } from "node:http";

import type { Browser } from "playwright-core";

import { startApi, type TestApi } from "../../support/api.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import { createDatabase, type TestDatabase } from "../../support/postgres.ts";
import { connect, listenWith, startProvider } from "../../support/sso.ts";
import { addTenants, addUser } from "../../support/tenants.ts";

test.skipIf(lacks("chromium"))(
  "a person in Chromium goes from discovery through the provider's pages to an API call",
  async () => {
    if (browser === undefined) throw new Error("There is no browser.");
    const page = await browser.newPage();
    // The first view of the dashboard may have to be built.
    page.setDefaultTimeout(120_000);
    await page.goto(`${front.issuer}/healthz`);
    const call = (path: string, init: object = {}): Promise<Called> =>
      page.evaluate(
        async ([url, options]) => {
          const answer = await fetch(url, options);
          const body = (await answer.json()) as Called["body"];
          return { status: answer.status, body };
        },
        [`${front.issuer}/api/v1${path}`, init] as const,
      );
    const discovered = await call("/auth/discover", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ email: "ada@corp.test" }),
    });
    await page.goto(String(discovered.body["sso_url"]));
    expect(new URL(page.url()).origin).toBe(provider.issuer);
    await page.fill("input[name=login]", "ada");
    await page.fill("input[name=password]", "any");
    await page.click("button[type=submit]");
    await page.waitForSelector("input[name=prompt][value=consent]", { state: "attached" });
    await page.click("button[type=submit]");
    await page.waitForURL(`${front.issuer}/dashboard?code=*`);

    // Scripts cannot read the cookie that ties the flow to this browser.
    expect(await page.evaluate("document.cookie")).not.toContain("rr_sso");
    const cookies = await page.context().cookies(front.issuer);
    expect(cookies.find(({ name }) => name === "rr_sso")).toMatchObject({
      httpOnly: true,
      sameSite: "Lax",
    });
    const code = new URL(page.url()).searchParams.get("code") ?? "";
    const session = await call(`/auth/sso/exchange?code=${code}`);
    expect(session).toMatchObject({ status: 200, body: { user: { email: "ada@corp.test" } } });
    const headers = { Authorization: `Bearer ${String(session.body["token"])}` };
    const reviews = await call("/account/reviews", { headers });
    expect(reviews).toMatchObject({ status: 200, body: { data: [] } });
    expect((await call(`/auth/sso/exchange?code=${code}`)).status).toBe(400);

    // An invented callback ends at the same URL as every failure.
    await page.goto(
      `${front.issuer}/api/v1/auth/sso/callback/${provider.connection}?state=x&code=y`,
    );
    expect(page.url()).toBe(`${front.issuer}/dashboard?error=sso_failed`);
    await page.close();
  },
);

let database: TestDatabase;

let api: TestApi;

let front: Awaited<ReturnType<typeof listenWith>>;

let provider: Awaited<ReturnType<typeof startProvider>>;

let browser: Browser | undefined;

/** The API must know its URL before it starts, so a proxy with a known URL is put in front of it. */
async function passOn(to: string, request: IncomingMessage, response: ServerResponse) {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  const headers = Object.entries(request.headers).filter(
    (pair): pair is [string, string] => typeof pair[1] === "string" && pair[0] !== "connection",
  );
  const answer = await fetch(to + (request.url ?? ""), {
    method: request.method ?? "GET",
    headers: Object.fromEntries(headers),
    redirect: "manual",
    ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
  });
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
}

beforeAll(async () => {
  if (!isPresent("chromium")) return;
  database = await createDatabase();
  const { superAdmin, partners } = await addTenants(database.db);
  let to = "";
  front = await listenWith((request, response) => void passOn(to, request, response));
  api = await startApi({ db: database.db, config: { serverRoot: front.issuer } });
  to = api.listen();
  const token = await api.login(superAdmin.email);
  const company_id = partners[0].accounts[0].id;
  const role = "account_user";
  await addUser(database.db, { companyId: company_id, role, email: "ada@corp.test" });
  provider = await startProvider(
    (issuer) => connect(api, token, { company_id, issuer, domains: ["corp.test"] }),
    { ada: { email: "ada@corp.test" } },
    { serverRoot: front.issuer },
  );
  browser = await openBrowser();
});

afterAll(async () => {
  await browser?.close();
  if (browser === undefined) return;
  provider.stop();
  front.stop();
  await api.stop();
  await database.drop();
});

interface Called {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}
