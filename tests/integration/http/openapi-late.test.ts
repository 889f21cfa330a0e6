import { expect, test } from "bun:test";

import { startSignInWorld } from "../../support/sign-in.ts";

test("the description can be made after routes were used", async () => {
  const world = await startSignInWorld();
  const [partner] = world.tenants.partners;
  const lists = ["/partner/oauth-clients", "/partner/webhooks", "/account/sessions"];
  for (const [email, paths] of [
    [partner.owner.email, lists],
    [partner.accounts[0].owner.email, ["/account/reviews", "/account/users"]],
    [world.tenants.superAdmin.email, ["/sso/clients", "/admin/users", "/admin/audit-log"]],
  ] as const) {
    const token = await world.api.login(email);
    for (const path of paths)
      expect([path, (await world.api.call("GET", path, { token })).status]).toEqual([path, 200]);
  }
  expect((await world.api.call("GET", "/openapi.json", { root: true })).status).toBe(200);
  await world.stop();
});
