import { openSession } from "../../src/auth/sign-in/open-session.ts";
import type { TestApi } from "./api.ts";
import { addClient } from "./oauth.ts";
import type { SignInWorld } from "./sign-in.ts";
import type { TestUser } from "./tenants.ts";

/**
 * The kinds of tokens that one user can act with. `narrow` tokens have only the scope `NARROW`; `third` tokens belong to a
 * third-party OAuth client; `acting` tokens are impersonations. The token of an `integration` belongs to one that the
 * user, an owner, made.
 */
export const CALLER_KINDS = [
  "own",
  "narrow",
  "dashboard",
  "narrow-pat",
  "third",
  "narrow-third",
  "acting",
  "reset",
  "integration",
] as const;
export type CallerKind = (typeof CALLER_KINDS)[number];

/** The only scope of a narrow token. */
export const NARROW = "clients:write";

export interface TestCaller {
  readonly user: TestUser;
  readonly kind: CallerKind;
  readonly token: string;
  readonly clientId: string | null;
}

/**
 * Makes a fresh token of one kind for a user; null if such a user cannot have one (only account users are impersonated,
 * and only a partner's owners make integrations).
 */
export async function callerOf(
  world: SignInWorld,
  user: TestUser,
  kind: CallerKind,
): Promise<TestCaller | null> {
  const { database, api, clock, grant } = world;
  const userId = user.id;
  const firstParty = kind === "narrow" || kind === "narrow-pat";
  const isOfClient = firstParty || kind === "third" || kind === "narrow-third";
  const scopes = kind.startsWith("narrow") ? [NARROW] : ["*"];
  const clientId = isOfClient
    ? (await addClient(database.db, { firstParty, scopes })).clientId
    : null;
  const scope = scopes.join(" ");
  const signIn = async () => {
    const requestContext = {
      requestId: "r",
      ip: "127.0.0.1",
      userAgent: null,
      headers: new Headers(),
    };
    const method = clientId === null ? "login" : "authorization_code";
    const one = { user, method, clientId, scope, requestContext, now: clock.now() } as const;
    return (await database.db.transaction((tx) => openSession(tx, api.deps, one))).token;
  };
  switch (kind) {
    case "own":
    case "narrow":
    case "third":
    case "narrow-third":
      return { user, kind, clientId, token: await signIn() };
    case "dashboard":
      return { user, kind, clientId, token: await dashboardToken(world, await signIn()) };
    case "narrow-pat":
      return {
        user,
        kind,
        clientId,
        token: await grant({ userId, kind: "api_pat", name: "narrow", scope, clientId }),
      };
    case "acting": {
      if (!user.role.startsWith("account")) return null;
      const impersonatorId = world.tenants.partners[0].admin.id;
      const token = await grant({ userId, kind: "impersonation", impersonatorId });
      return { user, kind, clientId, token };
    }
    case "reset":
      return {
        user,
        kind,
        clientId,
        token: await grant({ userId, kind: "password_reset", scope: "password:reset" }),
      };
    case "integration": {
      if (user.role !== "partner_owner") return null;
      const { token } = await addIntegration(api, await signIn());
      return { user, kind, clientId, token };
    }
  }
}

/** Makes an integration, and its token, as the owner to whom the token `owner` belongs. */
export async function addIntegration(
  api: TestApi,
  owner: string,
  { name = "Machine", scopes = ["*"] }: { name?: string; scopes?: readonly string[] } = {},
): Promise<{ readonly id: number; readonly token: string }> {
  const make = async (path: string, body: object) => {
    const made = await api.call("POST", `/partner/integrations${path}`, { token: owner, body });
    if (made.status !== 201) throw new Error(`The integration was answered ${made.text}`);
    return made.body;
  };
  const id = Number((await make("", { name, scopes }))["id"]);
  return { id, token: String((await make(`/${id}/api-token`, {}))["token"]) };
}

async function dashboardToken({ api }: SignInWorld, token: string): Promise<string> {
  const { body, text } = await api.call("POST", "/account/api-token", {
    token,
    body: {},
  });
  if (typeof body["token"] !== "string") throw new Error(text);
  return body["token"];
}
