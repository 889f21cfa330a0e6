import { expect, test } from "bun:test";

import {
  clientBody,
  clientsPathOf,
  clientDraft,
  NEW_CLIENT,
  redirectErrors,
} from "../../../src/dashboard/app/pages/keys/client-model.ts";

const draft = {
  ...NEW_CLIENT,
  name: "Acme",
  redirectUris: "\n https://a.example/cb \n\nhttp://b.example\n",
};

test("partners and super-admins manage clients, each at their own path; others do not", () => {
  expect(clientsPathOf("super_admin")).toBe("/sso/clients");
  expect(clientsPathOf("partner_owner")).toBe("/partner/oauth-clients");
  expect(clientsPathOf("partner_admin")).toBe("/partner/oauth-clients");
  expect(clientsPathOf("account_owner")).toBeUndefined();
});

test("addresses are sent one per line, without blanks", () => {
  expect(clientBody(draft, false).redirect_uris).toEqual([
    "https://a.example/cb",
    "http://b.example",
  ]);
});

test("only a super-admin says whether a client is first-party", () => {
  expect(clientBody(draft, false)).not.toHaveProperty("first_party");
  expect(clientBody(draft, true)).toHaveProperty("first_party", false);
});

test("what is wrong with an address is said with the address", () => {
  const errors = { "redirect_uris.1": ["must be https"], name: ["is empty"] };
  expect(redirectErrors(errors, draft)).toBe("http://b.example must be https.");
  expect(redirectErrors({ redirect_uris: ["is too long"] }, draft)).toBe("The list is too long.");
  expect(redirectErrors({ name: ["is empty"] }, draft)).toBeUndefined();
});

test("an edit begins with what the client has, and sends it back unchanged", () => {
  const client = {
    name: "Acme",
    confidential: true,
    redirect_uris: ["https://a.example/cb", "com.acme.app:/cb"],
    scopes: ["reviews:read"],
    grant_types: ["authorization_code", "password"],
    first_party: true,
  };
  const { confidential: _fixed, ...changeable } = client;
  expect<unknown>(clientBody(clientDraft(client), true)).toEqual(changeable);
});
