import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { DIGEST_KINDS, KEY_KINDS } from "../../../src/lib/kind-key.ts";
import type { Passwords } from "../../../src/lib/password.ts";
import { PASSWORD } from "../../support/api.ts";
import { mailsTo } from "../../support/auth-mails.ts";
import { type AppHolder, appCode, challenged, prove, withApp } from "../../support/factors.ts";
import { addClient, authorizeParams, Browser, newPkce } from "../../support/oauth.ts";
import { startSignInWorld } from "../../support/sign-in.ts";
import type { TestUser } from "../../support/tenants.ts";

/** Every wrong password is as cheap as a comparison, because thousands are sent. */
const passwords: Passwords = {
  hash: async (password) => password,
  verify: async (password, hash) => hash !== null && password === PASSWORD,
  needsRehash: () => false,
  isBusy: false,
};
const world = await startSignInWorld({ passwords });
const { api, clock, database, tenants } = world;
afterAll(() => world.stop());

/** Texts that anybody may type as an email, and that look like the key of another thing of the victim. */
function imitations({ id, email }: TestUser): string[] {
  const kinds = [...new Set([...DIGEST_KINDS, ...Object.keys(KEY_KINDS)])];
  const values = [String(id), String(tenants.partners[0].id), email];
  return kinds.flatMap((kind) =>
    values.flatMap((value) => ["\0", ":", " "].map((between) => `${kind}${between}${value}`)),
  );
}

describe("while a stranger has tried everything with texts that imitate other keys, a user", () => {
  let victim: AppHolder;

  beforeAll(async () => {
    victim = await withApp(world, await world.freshUser("partner_owner"));
    const browser = new Browser(api);
    const client = await addClient(database.db);
    await browser.open(authorizeParams(client, newPkce()));
    for (const email of imitations(victim.user)) {
      for (let i = 0; i < 5; i++)
        await api.call("POST", "/login", { body: { email, password: "x" } });
      await browser.signIn(email, "x");
      for (const type of ["forgot_password", "change_password", "signup"]) {
        await api.call("POST", "/email-otp/resend", { body: { email, type } });
        await api.call("POST", "/email-otp/verify", { body: { email, type, otp: "000000" } });
      }
    }
    // Codes of one email are 60 s apart.
    clock.advance(30_000);
  });

  test("signs in with password and code, and proves the code again", async () => {
    const { user, secret } = victim;
    const { token } = await challenged(api, user);
    const answer = await prove(api, token, { code: appCode(secret, clock) });
    expect([answer.status, answer.body["code"]]).toEqual([200, undefined]);
    clock.advance(30_000);
    const body = { code: appCode(secret, clock) };
    const path = "/account/second-factors/step-up";
    const proof = await api.call("POST", path, { token: String(answer.body["token"]), body });
    expect(proof.status).toBeLessThan(300);
  });

  test("signs in at the page of an OAuth client", async () => {
    const browser = new Browser(api);
    await browser.open(authorizeParams(await addClient(database.db), newPkce()));
    expect((await browser.signIn(victim.user.email)).status).toBe(200);
  });

  test("invites people, and gets a code by mail", async () => {
    const { token, user } = victim;
    const { email } = user;
    const guest = { email: "guest@p1.test", name: "Guest", role: "partner_admin" };
    const invited = await api.call("POST", "/partner/users", { token, body: guest });
    expect(invited.status).toBe(201);
    const body = { email, type: "forgot_password" };
    expect((await api.call("POST", "/email-otp/resend", { body })).status).toBe(200);
    const sent = await mailsTo({ db: database.db, box: api.deps.box }, email);
    expect(sent.filter(({ text }) => /^ {4}\d{6}$/m.test(text))).toHaveLength(1);
  });
});
