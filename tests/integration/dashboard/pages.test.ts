import { readFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, test } from "bun:test";

import { PASSWORD } from "../../support/api.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";
import { useWebhookDashboard } from "../../support/dashboard/dashboard-webhooks.ts";
import { checkLooks } from "../../support/dashboard/dashboard.ts";
import { button, heading } from "../../support/dashboard/locators.ts";
import { reviewIdOf } from "../../support/factory.ts";
import { isPresent, lacks } from "../../support/needs.ts";
import { Receiver, until } from "../../support/network/receiver.ts";
import { addClient } from "../../support/oauth.ts";
import { addSsoConnection, addUser } from "../../support/tenants.ts";

// Every page of every role, with names that are markup.

const world = useWebhookDashboard();

const PEOPLE = ["a partner", "an account", "an operator"] as const;
type Person = (typeof PEOPLE)[number];

interface Sample {
  /** Path and filters below `/dashboard`. */
  readonly path: string;
  readonly title: string | RegExp;
  /** A text that a user has chosen and the page shows. */
  readonly shows?: string;
}

describe.skipIf(lacks("chromium"))("every page", () => {
  test.each(PEOPLE)(
    "of %s opens by its address, has no faults in any look, and shows markup as text",
    async (user) => {
      const { email, pages } = samples()[user];
      const { page, faults } = await world.open("/security", { email });
      const styles: Record<string, number> = {};
      for (const { path, title, shows } of pages) {
        await page.goto(`${world.root}/dashboard${path}`);
        await heading(page, title).first().waitFor();
        const loaders = page.locator(".mantine-Loader-root");
        await until("all parts", async () => (await loaders.count()) === 0);
        const { pathname, search } = new URL(page.url());
        expect(pathname + search).toBe(`/dashboard${path}`);
        if (shows !== undefined) await page.getByText(shows).first().waitFor();
        expect([path, await page.locator("[onerror], main script").count()]).toEqual([path, 0]);
        expect([path, faults]).toEqual([path, []]);
        if (user !== "an operator")
          expect([path, await page.evaluate(OUR_NAME)]).toEqual([path, null]);
        styles[path] = await page.evaluate<number>(STYLE_BYTES);
        await checkLooks(page, `page ${path}`);
      }
      if (process.env["WEIGHTS"] !== undefined) console.log(styles);
      const sizes = Object.values(styles);
      expect(Math.min(...sizes)).toBeGreaterThan(50_000);
      expect(Math.max(...sizes)).toBeLessThan(STYLE_LIMIT);
    },
  );

  test("of the application is among them", () => {
    const isOf = (pattern: string) => (path: string) =>
      new RegExp(`^${pattern.replaceAll(/:\w+/g, "[^/]+")}$`).test(path);
    const opened = Object.values(samples()).flatMap(({ pages }) =>
      pages.map(({ path }) => path.replace(/\?.*/, "").replace(/^(\/companies\/\d+)\/.*/, "$1")),
    );
    const literal = PATHS.filter((path) => !path.includes(":"));
    const rest = opened.filter((path) => !literal.includes(path));
    expect(literal.filter((path) => !opened.includes(path))).toEqual([]);
    expect(PATHS.filter((path) => path.includes(":") && !rest.some(isOf(path)))).toEqual([]);
    expect(PATHS.length).toBeGreaterThan(20);
  });

  test("names a review that has markup in its title, and an account cannot create OAuth clients", async () => {
    const { email } = world.tenants.partners[0].accounts[0].owner;
    const { page } = await world.open(`/reviews/${ids.review}`, { email });
    await heading(page, `Review by ${HOSTILE}`).waitFor();
    expect(await page.title()).toBe(`Review by ${HOSTILE} · Brand p1`);
    await page.goto(`${world.root}/dashboard/keys`);
    await button(page, "Create").click();
    await page.getByRole("menuitem", { name: /^24-hour token/ }).waitFor();
    expect(await page.getByRole("menuitem", { name: /^OAuth client/ }).count()).toBe(0);
  });
});

const HOSTILE = `<img src=x onerror="document.title='owned'"><b>bold</b>`;

/** A page shows only the first word of the name of an unknown browser. */
const HOSTILE_AGENT = "<img/src=x/onerror=alert(1)>";

/** The paths of all pages, read from the files that list them. */
const PATHS = ["areas.ts", "pages/webhooks/pages.ts"].flatMap((file) => {
  const app = join(import.meta.dir, "../../../src/dashboard/app");
  const paths = readFileSync(join(app, file), "utf8").matchAll(/"(\/[a-z][^"]*)"/g);
  return [...paths].map(([, path = ""]) => path);
});

/** The bytes of the style sheets of a page, uncompressed. */
const STYLE_BYTES = `performance.getEntriesByType("resource")
  .filter(({ name }) => name.endsWith(".css"))
  .reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0)`;

/** The line of a page or its title that has our name, which the partner's white label replaces, except in a header. */
const OUR_NAME = `[document.title, document.body.innerText].join("\\n")
  .replaceAll("ReviewRelay/1.0 (webhooks)", "").match(/.*review ?relay.*/i)?.[0] ?? null`;

const STYLE_LIMIT = 165_000;

const receiver = browserFixture(() => Receiver.start());

const ids = {
  subscription: "",
  event: "",
  review: 0,
  service: 0,
  store: 0,
  connection: "",
  user: 0,
};

function samples(): Readonly<Record<Person, { email: string; pages: readonly Sample[] }>> {
  const { partners, superAdmin } = world.tenants;
  const [partner] = partners;
  const webhook = `/webhooks/${ids.subscription}`;
  const viewed = `/companies/${partner.id}${webhook}`;
  return {
    "a partner": {
      email: partner.owner.email,
      pages: [
        { path: "/webhooks", title: "Webhooks", shows: HOSTILE },
        { path: webhook, title: HOSTILE },
        { path: `${webhook}?tab=deliveries&state=delivered`, title: HOSTILE },
        { path: `${webhook}?tab=settings`, title: HOSTILE },
        { path: `${webhook}/deliveries/${ids.event}`, title: "review_received" },
        { path: "/webhooks/new?kind=batch", title: "New subscription" },
        { path: "/webhooks/alerts", title: /Alerts/ },
        { path: "/events", title: "Event catalog" },
        { path: "/events/review_received", title: "review_received" },
        { path: "/accounts?name=a1", title: "Accounts" },
        { path: `/accounts/${partner.accounts[0].id}`, title: "p1-a1" },
        { path: "/team", title: "Team", shows: HOSTILE },
        { path: `/team/${ids.user}`, title: HOSTILE },
        { path: "/access", title: "Team access", shows: HOSTILE },
        { path: "/embedding", title: "Embedding" },
        { path: "/audit?action=AUTH_LOGIN", title: "Audit log", shows: HOSTILE },
        { path: "/keys", title: "API Keys", shows: HOSTILE },
        { path: "/security", title: "Security", shows: HOSTILE_AGENT },
      ],
    },
    "an account": {
      email: partner.accounts[0].owner.email,
      pages: [
        { path: "/reviews?rate=1", title: "Reviews", shows: HOSTILE },
        { path: `/reviews/${ids.review}`, title: /^Review by/, shows: HOSTILE },
        { path: "/sites", title: "Review sites" },
      ],
    },
    "an operator": {
      email: superAdmin.email,
      pages: [
        { path: "/dispatcher?order=age", title: "Dispatcher" },
        { path: "/companies", title: "Companies", shows: HOSTILE },
        { path: "/companies?tab=accounts", title: "Companies" },
        { path: `/companies/${partner.id}`, title: "p1" },
        { path: `/companies/${partner.id}?tab=users`, title: "p1", shows: HOSTILE },
        { path: `/companies/${partner.accounts[0].id}?tab=stores`, title: "p1-a1" },
        { path: viewed, title: HOSTILE },
        { path: `${viewed}?tab=deliveries`, title: HOSTILE },
        { path: `${viewed}?tab=settings`, title: HOSTILE },
        { path: "/users?q=evil%40p1.test", title: "Users", shows: HOSTILE },
        { path: "/inbox", title: "Inbox", shows: HOSTILE },
        { path: "/inbox?tab=waiting", title: "Inbox" },
        { path: "/stores", title: "Stores", shows: HOSTILE },
        { path: `/stores/${ids.store}`, title: HOSTILE },
        { path: "/plans", title: "Plans", shows: HOSTILE },
        { path: "/sso", title: "Single sign-on" },
        { path: `/sso/${ids.connection}`, title: /^Single sign-on of/ },
        { path: "/services", title: "Services", shows: HOSTILE },
        { path: `/services/${ids.service}`, title: HOSTILE },
        { path: "/providers", title: "Providers", shows: HOSTILE },
        { path: "/audit-webhook", title: "Audit webhook" },
        { path: "/erasures", title: "Erasures" },
        { path: "/erasures?tab=companies", title: "Erasures" },
        { path: `/users/${ids.user}`, title: HOSTILE },
        { path: "/audit", title: "Audit log", shows: HOSTILE },
      ],
    },
  };
}

beforeAll(async () => {
  if (!isPresent("chromium")) return;
  const { api, database, tenants, token } = world;
  const [partner] = tenants.partners;
  const { id } = await world.subscribe({ webhook_url: receiver.url, label: HOSTILE });
  ids.subscription = id;
  await world.emit(1);
  ids.review = await reviewIdOf(database.db, "review-1");
  await database.db.sql`
    update reviews set reviewer = ${HOSTILE}, content = ${`${HOSTILE}\n<script>x</script>`}, rate = 1
     where id = ${ids.review}`;
  // The receiver gets the request before the attempt is recorded.
  await until("the attempt", async () => {
    const { body } = await world.ask("GET", `/${id}/deliveries`);
    const [attempt] = body["data"] as { event_id: string }[];
    ids.event = attempt?.event_id ?? "";
    return attempt !== undefined;
  });
  const account = await api.login(partner.accounts[0].owner.email);
  for (const [action, body] of [
    ["notes", { body: HOSTILE }],
    ["response", { body: HOSTILE }],
    ["flag", { reason: HOSTILE }],
  ] as const)
    await api.call("POST", `/account/reviews/${ids.review}/${action}`, { token: account, body });
  // A user of the partner, and a partner, with names and a browser that are markup.
  const evil = { companyId: partner.id, role: "partner_admin", email: "evil@p1.test" } as const;
  const user = await addUser(database.db, evil);
  ids.user = user.id;
  await database.db.sql`update users set name = ${HOSTILE} where id = ${user.id}`;
  for (const email of [evil.email, partner.owner.email])
    await api.call("POST", "/login", {
      body: { email, password: PASSWORD },
      headers: { "User-Agent": HOSTILE_AGENT },
    });
  const operator = await api.login(tenants.superAdmin.email);
  const make = async (path: string, fields: object) => {
    const body = { name: HOSTILE, ...fields };
    return (await api.call("POST", `/admin/${path}`, { token: operator, body })).body;
  };
  await make("partners", {});
  await make("plans", { features: ["f".repeat(64)] });
  await make("providers", { slug: "s".repeat(64) });
  ids.store = Number((await make("stores", { account_id: partner.accounts[0].id }))["id"]);
  ids.service = Number((await make("services", { scopes: ["actions:write"] }))["id"]);
  await make(`services/${ids.service}/tokens`, {
    expires_at: new Date(Date.now() + 30 * 86_400_000).toISOString(),
  });
  await database.db.sql`
    insert into inbox (service_id, action)
    values (${ids.service}, ${JSON.stringify({ id: HOSTILE, event: HOSTILE })}::text::jsonb)`;
  await database.db.sql`
    update inbox set state = 'rejected', errors = ${JSON.stringify({ [HOSTILE]: HOSTILE })}::text::jsonb`;
  ids.connection = await addSsoConnection(database.db, {
    companyId: partner.id,
    domains: [`${"long.".repeat(20)}example`],
  });
  const access = { name: HOSTILE, scopes: ["webhooks:read"] };
  await api.call("POST", "/account/personal-access-tokens", { token, body: access });
  await addClient(database.db, {
    companyId: partner.id,
    name: "Long".repeat(20),
    redirectUris: [`https://app.example/${"callback".repeat(30)}`],
  });
});
