import { expect, test } from "bun:test";

import {
  clientBody,
  clientsPathOf,
  clientDraft,
  NEW_CLIENT,
  redirectErrors,
} from "../../../src/dashboard/app/pages/keys/client-model.ts";

test("partners and super-admins manage clients at separate paths; other roles manage none", () => {
  expect(clientsPathOf("super_admin")).toBe("/sso/clients");
  expect(clientsPathOf("partner_owner")).toBe("/partner/oauth-clients");
  expect(clientsPathOf("partner_admin")).toBe("/partner/oauth-clients");
  expect(clientsPathOf("account_owner")).toBeUndefined();
});

test("redirect URIs are read one per line, and empty lines are dropped", () => {
  expect(clientBody(draft, false).redirect_uris).toEqual([
    "https://a.example/cb",
    "http://b.example",
  ]);
});

test("only a super-admin sets whether a client is first-party", () => {
  expect(clientBody(draft, false)).not.toHaveProperty("first_party");
  expect(clientBody(draft, true)).toHaveProperty("first_party", false);
});

test("the error of a redirect URI names the URI", () => {
  const errors = { "redirect_uris.1": ["must be https"], name: ["is empty"] };
  expect(redirectErrors(errors, draft)).toBe("http://b.example must be https.");
  expect(redirectErrors({ redirect_uris: ["is too long"] }, draft)).toBe("The list is too long.");
  expect(redirectErrors({ name: ["is empty"] }, draft)).toBeUndefined();
});

test("an edit starts with the client's values, and sends unedited ones back unchanged", () => {
  const client = {
    name: "Acme",
    confidential: true,
    redirect_uris: ["https://a.example/cb", "com.acme.app:/cb"],
    scopes: ["reviews:read"],
    grant_types: ["authorization_code", "password"],
    first_party: true,
    require_pkce: false,
  };
  const { confidential: _fixed, ...changeable } = client;
  expect<unknown>(clientBody(clientDraft(client), true)).toEqual(changeable);
});

const draft = {
  ...NEW_CLIENT,
  name: "Acme",
  redirect_uris: "\n https://a.example/cb \n\nhttp://b.example\n",
};
