import { afterAll, describe, expect, test } from "bun:test";

import { PASSWORD } from "../../support/api.ts";
import { appCode, type AppHolder, withApp, wrongCode } from "../../support/factors.ts";
import {
  addClient,
  authorizeParams,
  Browser,
  credentialsOf,
  newPkce,
  postForm,
  returned,
} from "../../support/oauth.ts";
import { startSignInWorld } from "../../support/sign-in.ts";

const world = await startSignInWorld();
const { api, clock, database } = world;
const { db } = database;
afterAll(() => world.stop());

describe("the authorize page", () => {
  test("asks for a code after the password, and goes on to the consent and the code", async () => {
    const { browser, holder, redirected } = await atFactorPage();
    expect(redirected.status).toBe(200);
    expect(redirected.text).toContain("Code from your authenticator app, or a recovery code");
    expect(redirected.text).not.toContain("<script");
    expect(redirected.headers.get("content-security-policy")).not.toContain("script-src");
    const asked = await browser.submit({ code: appCode(holder.secret, clock), action: "prove" });
    expect(asked.text).toContain("everything that you can do here");
    const { params } = returned(await browser.submit({ action: "allow" }));
    expect(params["code"]).toMatch(/^[0-9a-f]{64}$/);
  });

  test("takes a recovery code, and asks again after a wrong one", async () => {
    const { browser, holder } = await atFactorPage();
    const wrong = await browser.submit({ code: wrongCode(holder, clock), action: "prove" });
    expect(wrong.status).toBe(400);
    expect(wrong.text).toContain("The code is wrong or was already used.");
    const empty = await browser.submit({ code: "", action: "prove" });
    expect(empty.status).toBe(400);
    const right = await browser.submit({ code: holder.recoveryCodes[0] });
    expect(right.text).toContain("everything that you can do here");
  });

  test("begins again after five wrong codes, and says how long codes are locked", async () => {
    const { browser, holder } = await atFactorPage();
    const submit = () => browser.submit({ code: wrongCode(holder, clock), action: "prove" });
    for (let i = 0; i < 4; i++) expect((await submit()).text).toContain("Second step");
    expect((await submit()).text).toContain("Please sign in again");
    await browser.signIn(holder.user.email);
    const locked = await browser.submit({ code: appCode(holder.secret, clock), action: "prove" });
    expect([locked.status, locked.headers.get("retry-after")]).toEqual([429, "60"]);
    expect(locked.text).toContain("try again in 1 minute.");
  });

  test("gives no code for a ticket of the password step, and none without a proof", async () => {
    const { browser } = await atFactorPage();
    for (const action of ["allow", "prove"]) {
      const answer = await browser.submit({ action });
      expect([answer.status, answer.headers.get("location")]).toEqual([400, null]);
    }
  });

  test("sends a user who has to set up a factor to the dashboard", async () => {
    const user = await world.freshUser("account_user");
    await db.sql`update companies set require_second_factor = true where id = ${user.companyId}`;
    const browser = new Browser(api);
    await browser.open(authorizeParams(await addClient(db), newPkce()));
    const answer = await browser.signIn(user.email);
    expect(answer.status).toBe(403);
    expect(answer.text).toContain("Set one up at http://localhost:3000/dashboard first.");
    await db.sql`update companies set require_second_factor = false where id = ${user.companyId}`;
  });
});

describe("the password grant", () => {
  test("names the authorize page to a user who needs a factor, and works for others", async () => {
    const client = await addClient(db, { firstParty: true });
    const grant = (username: string) =>
      postForm(api, "/oauth/token", {
        grant_type: "password",
        ...credentialsOf(client),
        username,
        password: PASSWORD,
      });
    const { user } = await withApp(world, await world.freshUser());
    const refused = await grant(user.email);
    expect([refused.status, refused.body]).toEqual([
      400,
      {
        error: "invalid_grant",
        error_description:
          "The user needs a second factor; sign in at http://localhost:3000/oauth/authorize.",
      },
    ]);
    expect((await grant((await world.freshUser()).email)).status).toBe(200);
    const bound = await world.freshUser("account_user");
    await db.sql`update companies set require_second_factor = true where id = ${bound.companyId}`;
    expect((await grant(bound.email)).body["error"]).toBe("invalid_grant");
    await db.sql`update companies set require_second_factor = false where id = ${bound.companyId}`;
  });
});

/** Opens the page in a browser and sends the right password of a user with an app. */
async function atFactorPage() {
  const holder: AppHolder = await withApp(world, await world.freshUser());
  const browser = new Browser(api);
  await browser.open(authorizeParams(await addClient(db), newPkce()));
  return { browser, holder, redirected: await browser.signIn(holder.user.email) };
}
