import { describe, expect, test } from "bun:test";

import type { Page } from "playwright-core";

import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { PASSWORD } from "../../support/api.ts";
import { browserFixture } from "../../support/dashboard/browser.ts";
import { lacks } from "../../support/needs.ts";
import { openBrowser } from "../../support/dashboard/chromium.ts";
import { challengeOf } from "../../support/factors.ts";
import { addClient, authorizeParams, formOf, newPkce } from "../../support/oauth.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import type { TestUser } from "../../support/tenants.ts";

// Tests passkeys with the virtual authenticator of Chromium, on a page of the product's own origin.

const PORT = await freePort();
const world = browserFixture(async () => {
  const started = await startSignInWorld({ config: { serverRoot: `http://localhost:${PORT}` } });
  const browser = await openBrowser();
  started.api.listen(PORT);
  return {
    ...started,
    browser,
    async stop() {
      await browser.close();
      await started.stop();
    },
  };
});

describe.skipIf(lacks("chromium"))("a passkey", () => {
  test("is added, signs in, and works once for the options of one token", async () => {
    const { page, user } = await visit();
    const token = await world.api.login(user.email);
    const added = await create(page, token);
    expect(added).toMatchObject({
      status: 200,
      body: { factor: { kind: "passkey", name: "Passkey" }, sign_in: null },
    });
    const challenge = await challenged(user);
    expect(challenge.methods).toEqual(["passkey", "recovery_code"]);
    const { options, passkey } = await assertion(page, challenge.token);
    expect(options).toMatchObject({ rpId: "localhost", userVerification: "required" });
    const other = await challenged(user);
    expect((await prove(other.token, passkey)).status).toBe(422);
    expect((await prove(challenge.token, passkey)).status).toBe(200);
    expect((await prove(challenge.token, passkey)).status).toBe(401);
  });

  test("is refused for earlier options, after five minutes, and with a changed signature", async () => {
    const { page, user } = await visit();
    await create(page, await world.api.login(user.email));
    const { token } = await challenged(user);
    const early = await assertion(page, token);
    await options(token);
    expect((await prove(token, early.passkey)).status).toBe(422);
    const forged = await assertion(page, token);
    const { response } = forged.passkey;
    const signature = `${String(response["signature"]).slice(0, -4)}AAAA`;
    expect(
      (await prove(token, { ...forged.passkey, response: { ...response, signature } })).status,
    ).toBe(422);
    const session = await challenged(user);
    const late = await assertion(page, session.token);
    const made = await world.database.db.sql`
      update second_factor_challenges set passkey_at = passkey_at - interval '5 minutes'
       where passkey_at is not null and jti in (select jti from tokens where user_id = ${user.id}) returning 1`;
    expect(made.length).toBeGreaterThan(0);
    expect((await prove(session.token, late.passkey)).status).toBe(422);
    expect((await prove(token, (await assertion(page, token)).passkey)).status).toBe(200);
  });

  test("is refused when its counter goes back, or when the user was not verified", async () => {
    const { page, user, authenticator } = await visit();
    await create(page, await world.api.login(user.email));
    const { token } = await challenged(user);
    await world.database.db.sql`update second_factors set sign_count = 1000
      where user_id = ${user.id}`;
    expect((await prove(token, (await assertion(page, token)).passkey)).status).toBe(422);
    await world.database.db.sql`update second_factors set sign_count = 0
      where user_id = ${user.id}`;
    await authenticator.verifies(false);
    const unverified = await assertion(page, token, "discouraged");
    expect((await prove(token, unverified.passkey)).status).toBe(422);
    await authenticator.verifies(true);
    expect((await prove(token, (await assertion(page, token)).passkey)).status).toBe(200);
  });

  test("is added once, and not to another user", async () => {
    const [one, two] = [await visit(), await visit()];
    const token = await world.api.login(one.user.email);
    const created = await credential(one.page, token);
    const path = "/account/second-factors/passkeys";
    const body = { credential: created, name: "Laptop" };
    expect((await world.api.call("POST", path, { token, body })).status).toBe(200);
    expect((await world.api.call("POST", path, { token, body })).status).toBe(422);
    const thief = await world.api.login(two.user.email);
    await world.api.call("POST", `${path}/creation-options`, { token: thief });
    expect((await world.api.call("POST", path, { token: thief, body })).status).toBe(422);
  });

  test("is one of at most ten of a user, also where two sessions add the tenth at once", async () => {
    const { page, user, authenticator } = await visit();
    const [token, second] = [
      await world.api.login(user.email),
      await world.api.login(user.email),
    ] as const;
    const first = await create(page, token);
    expect(first.status).toBe(200);
    const [recovery_code] = first.body["recovery_codes"] as string[];
    const stepUp = { token: second, body: { recovery_code } };
    const fresh = await world.api.call("POST", "/account/second-factors/step-up", stepUp);
    expect(fresh.status).toBe(200);
    for (let nth = 2; nth < 10; nth++) {
      // An authenticator has one passkey of a user.
      await authenticator.replace();
      expect((await create(page, token)).status).toBe(200);
    }
    await authenticator.replace();
    const tenth = { credential: await credential(page, token) };
    await authenticator.replace();
    const eleventh = { credential: await credential(page, second) };
    const path = "/account/second-factors/passkeys";
    const both = await Promise.all([
      world.api.call("POST", path, { token, body: tenth }),
      world.api.call("POST", path, { token: second, body: eleventh }),
    ]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    const late = await world.api.call("POST", `${path}/creation-options`, { token });
    expect([late.status, late.body["code"], late.body["message"]]).toEqual([
      409,
      "limit_reached",
      "The limit is reached; delete a record first.",
    ]);
    const list = await world.api.call("GET", "/account/second-factors", { token });
    const factors = list.body["factors"] as { id: string }[];
    expect(factors).toHaveLength(10);
    const gone = await world.api.call("DELETE", `/account/second-factors/${factors[0]?.id}`, {
      token,
    });
    expect(gone.status).toBe(204);
    await authenticator.replace();
    expect((await create(page, token)).status).toBe(200);
  });

  test("is refused on the page of another origin", async () => {
    const { page, user } = await visit();
    const token = await world.api.login(user.email);
    const created = await credential(page, token);
    const { response } = created;
    const data = JSON.parse(
      Buffer.from(String(response["clientDataJSON"]), "base64url").toString(),
    );
    const moved = JSON.stringify({ ...data, origin: "http://localhost:1" });
    const clientDataJSON = Buffer.from(moved).toString("base64url");
    const body = { credential: { ...created, response: { ...response, clientDataJSON } } };
    const answer = await world.api.call("POST", "/account/second-factors/passkeys", {
      token,
      body,
    });
    expect([answer.status, Object.keys(answer.body["errors"] ?? {})]).toEqual([
      422,
      ["credential"],
    ]);
  });

  test("finishes the sign-in at the authorize page by a click", async () => {
    const { page, user } = await visit();
    await create(page, await world.api.login(user.email));
    const client = await addClient(world.database.db);
    await page.goto(
      `http://localhost:${PORT}/oauth/authorize?${formOf(authorizeParams(client, newPkce()))}`,
    );
    await page.fill("#email", user.email);
    await page.fill("#password", PASSWORD);
    await page.click("button[value=sign_in]");
    await page.click("#use-passkey");
    await page.waitForSelector("button[value=allow]");
    expect(await page.textContent("h1")).toBe("Allow A client to act for you?");
  });
});

/** Opens a page of the product's origin in a new context, with a virtual authenticator. */
async function visit() {
  const context = await world.browser.newContext();
  const page = await context.newPage();
  await page.goto(`http://localhost:${PORT}/healthz`);
  const cdp = await context.newCDPSession(page);
  await cdp.send("WebAuthn.enable");
  const add = () =>
    cdp.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
  let { authenticatorId } = await add();
  const verifies = (isUserVerified: boolean) =>
    cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified });
  const replace = async () => {
    await cdp.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId });
    ({ authenticatorId } = await add());
  };
  return { page, user: await world.freshUser(), authenticator: { verifies, replace } };
}

interface Credential {
  readonly id: string;
  readonly response: Readonly<Record<string, unknown>>;
}

async function credential(page: Page, token: string): Promise<Credential> {
  const path = "/account/second-factors/passkeys/creation-options";
  const { body } = await world.api.call("POST", path, { token });
  const json: string = await page.evaluate(
    `(async (json) => JSON.stringify((await navigator.credentials.create({
      publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(json) })).toJSON()))(${JSON.stringify(body)})`,
  );
  return JSON.parse(json);
}

async function create(page: Page, token: string) {
  const body = { credential: await credential(page, token) };
  return world.api.call("POST", "/account/second-factors/passkeys", { token, body });
}

const options = async (token: string) =>
  (await world.api.call("POST", "/account/second-factors/passkeys/request-options", { token }))
    .body;

/** Lets the browser prove the passkey for new options of this token. */
async function assertion(page: Page, token: string, userVerification?: string) {
  const fetched = await options(token);
  const asked = { ...fetched, ...(userVerification && { userVerification }) };
  const json: string = await page.evaluate(
    `(async (json) => JSON.stringify((await navigator.credentials.get({
      publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(json) })).toJSON()))(${JSON.stringify(asked)})`,
  );
  const passkey: Credential = JSON.parse(json);
  return { options: fetched, passkey };
}

async function challenged({ email }: TestUser) {
  return challengeOf(
    await world.api.call("POST", "/login", { body: { email, password: PASSWORD } }),
  );
}

const prove = (token: string, passkey: Credential) =>
  world.api.call("POST", "/login/second-factor", { token, body: { passkey } });
