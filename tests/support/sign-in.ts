import { eq } from "drizzle-orm";

import { auditLog } from "../../db/schema/companies.ts";
import { issueToken, type TokenGrant } from "../../src/auth/sign-in/open-session.ts";
import type { Role } from "../../src/http/principal.ts";
import { startApi, type TestApi } from "./api.ts";
import { createFakeClock, type FakeClock } from "./clock.ts";
import { createDatabase, type TestDatabase } from "./postgres.ts";
import { addTenants, addUser, type Tenants, type TestUser } from "./tenants.ts";

/** Two API instances over one database and one fake clock, with the users of two partners. */
export interface SignInWorld {
  readonly database: TestDatabase;
  readonly tenants: Tenants;
  readonly clock: FakeClock;
  readonly api: TestApi;
  /** The second instance, with the same settings, to show that state is shared. */
  readonly other: TestApi;
  /** Adds a user that no other test changes, to the first partner or to its first account. */
  freshUser(
    role?: FreshRole,
    over?: { isActive?: boolean; passwordHash?: null },
  ): Promise<TestUser>;
  /** Returns the status of `GET /verify-token`, which is 200 while the token is valid. */
  statusOf(token: string, on?: TestApi): Promise<number>;
  /** Lists the audit rows of the request with this id, oldest first. */
  auditOf(requestId: string): Promise<(typeof auditLog.$inferSelect)[]>;
  /** Issues a token with its row by the same function as the sign-in actions. */
  grant(over: Partial<TokenGrant> & { userId: number }): Promise<string>;
  stop(): Promise<void>;
}
type FreshRole = Extract<
  Role,
  "partner_owner" | "partner_admin" | "account_owner" | "account_user"
>;

export async function startSignInWorld(
  overrides: Omit<Parameters<typeof startApi>[0], "db" | "clock"> = {},
): Promise<SignInWorld> {
  const database = await createDatabase();
  const tenants = await addTenants(database.db);
  const clock = createFakeClock();
  const api = await startApi({ db: database.db, clock, ...overrides });
  const other = await startApi({ db: database.connect(), clock, config: api.deps.config });
  let names = 0;
  return {
    database,
    tenants,
    clock,
    api,
    other,
    freshUser(role = "partner_admin", over = {}) {
      const [partner] = tenants.partners;
      const companyId = role.startsWith("partner") ? partner.id : partner.accounts[0].id;
      return addUser(database.db, { companyId, role, email: `fresh-${++names}@p1.test`, ...over });
    },
    statusOf: async (token, on = api) => (await on.call("GET", "/verify-token", { token })).status,
    auditOf: (requestId) =>
      database.db
        .select()
        .from(auditLog)
        .where(eq(auditLog.requestId, requestId))
        .orderBy(auditLog.id),
    async grant(over) {
      const alone = { familyId: null, clientId: null, impersonatorId: null };
      const base = {
        kind: "access",
        ...alone,
        scope: "*",
        ttlS: 86_400,
        now: clock.now(),
      } as const;
      const { token } = await database.db.transaction((tx) =>
        issueToken(tx, api.deps.keys, { ...base, ...over }),
      );
      return token;
    },
    async stop() {
      await api.stop();
      await database.drop();
    },
  };
}
