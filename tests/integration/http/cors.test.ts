import { describe, expect, test } from "bun:test";

import { startApi } from "../../support/api.ts";
import { createDatabase } from "../../support/postgres.ts";
import { fixture } from "../../support/fixture.ts";

const database = fixture(createDatabase);
const api = fixture(() => startApi({ db: database.db, config: { corsOrigins: [KNOWN] } }));

describe("an app in a browser (contract 2.11)", () => {
  test.each([
    ["POST", "/oauth/token", 400],
    ["POST", "/oauth/revoke", 400],
    ["GET", "/.well-known/jwks.json", 200],
    ["GET", "/.well-known/oauth-authorization-server", 200],
  ])(
    "reads the response of %s %s from any origin, without credentials",
    async (method, path, status) => {
      const answer = await ask(method, path, OTHER);
      expect([answer.status, allowed(answer)]).toEqual([status, "*"]);
      expect(answer.headers.get("access-control-allow-credentials")).toBeNull();
      const preflight = await ask("OPTIONS", path, OTHER, true);
      expect([preflight.status, allowed(preflight), preflight.text]).toEqual([204, "*", ""]);
      expect(preflight.headers.get("access-control-allow-headers")).toContain("Authorization");
    },
  );

  test.each(["/oauth/introspect", "/oauth/authorize", "/healthz", "/openapi.json"])(
    "reads no response of %s",
    async (path) => {
      for (const origin of [KNOWN, OTHER]) {
        expect(allowed(await ask("GET", path, origin))).toBeNull();
        const preflight = await ask("OPTIONS", path, origin, true);
        expect([preflight.status, allowed(preflight)]).toEqual([405, null]);
      }
    },
  );

  test("reads the API from a configured origin only", async () => {
    const path = "/api/v1/verify-token";
    const own = await ask("GET", path, KNOWN);
    expect([own.status, allowed(own), own.headers.get("vary")]).toEqual([401, KNOWN, "Origin"]);
    expect((await ask("OPTIONS", path, KNOWN, true)).status).toBe(204);
    for (const origin of [OTHER, "null", `${KNOWN}.evil.example`, "https://APP.example"]) {
      const answer = await ask("GET", path, origin);
      expect([origin, answer.status, allowed(answer)]).toEqual([origin, 401, null]);
      expect((await ask("OPTIONS", path, origin, true)).status).toBe(405);
    }
  });

  test("without an origin gets no header", async () => {
    expect(allowed(await api.call("GET", "/.well-known/jwks.json", { root: true }))).toBeNull();
  });
});

const KNOWN = "https://app.example";

const OTHER = "https://other.example";

const ask = (method: string, path: string, origin: string, isPreflight = false) =>
  api.call(method, path, {
    root: true,
    headers: { Origin: origin, ...(isPreflight && { "Access-Control-Request-Method": "POST" }) },
  });

const allowed = ({ headers }: { headers: Headers }) => headers.get("access-control-allow-origin");
