import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Elysia } from "elysia";

import { planObject } from "../../auth/model.ts";
import { shownAs } from "../../http/shown.ts";
import * as companies from "../actions/companies.ts";
import * as stores from "../actions/stores.ts";
import * as users from "../actions/users.ts";
import {
  AccountBody,
  AccountChanges,
  AccountObject,
  closed,
  type Company,
  PartnerBody,
  PartnerChanges,
  PartnerObject,
  showAccount,
  showPartner,
  type User,
  UserBody,
  UserChanges,
  UserObject,
} from "../model.ts";
import { companyBy } from "../queries/companies.ts";
import { latestReviews, linksOfStores, storeBy, storeReviewSiteBy } from "../queries/stores.ts";
import { userBy } from "../queries/users.ts";
import {
  type Plan,
  PlanChanges,
  type Provider,
  ProviderChanges,
  ProviderObject,
  showStore,
  showStoreReviewSite,
  type Store,
  StoreBody,
  StoreChanges,
  StoreObject,
  type StoreReviewSite,
  StoreReviewSiteBody,
  StoreReviewSiteChanges,
  StoreReviewSiteObject,
} from "../store-model.ts";
import { type AdminRouteDeps, changing, provisioning } from "./base.ts";
import {
  changeRoutes,
  type FoundRecord,
  type RecordKind,
  showRoute,
  type SyncedKind,
  syncedRoutes,
} from "./records.ts";

/**
 * Defines the routes for single records of master data (contract 10.6). The lists and all other routes of these records
 * are in companies.ts, stores.ts and users.ts.
 */
export function masterDataRoutes(deps: AdminRouteDeps) {
  const synced = [partners(deps), accounts(deps), storeKind(deps), connections(deps)] as const;
  const app = new Elysia()
    .use(changeRoutes(deps, userKind(deps)))
    .use(syncedRoutes(deps, userKind(deps)));
  for (const kind of synced)
    app.use(showRoute(deps, kind)).use(changeRoutes(deps, kind)).use(syncedRoutes(deps, kind));
  for (const kind of [plans(deps), providers(deps)])
    app.use(showRoute(deps, kind)).use(changeRoutes(deps, kind));
  return app;
}

/*
 * The access rules of the kinds: records that decide about sign-ins can be changed only by a user in person. Plans,
 * stores and connections can also be changed by a script with a personal access token, as in the routes that create
 * them (contract 3.10).
 */

/** Narrows the type of a body that Elysia has validated and to which the external id was added afterwards. */
function validBody<T extends TSchema>(schema: T, body: object): Static<T> {
  if (!Value.Check(schema, body)) throw new Error("A validated body does not match its schema.");
  return body;
}

function partners(deps: AdminRouteDeps): SyncedKind<"/partners"> {
  const found = (partner: Company): FoundRecord => ({
    shown: showPartner(partner),
    changeErrors: (body) => companies.partnerErrors(deps, body, partner),
    change: async (caller, body) =>
      showPartner(await companies.changePartner(deps, caller, partner, body)),
    remove: (caller) => companies.deleteCompany(deps, caller, partner),
  });
  return {
    path: "/partners",
    data: "partners",
    name: "a partner",
    operation: "Partner",
    object: PartnerObject,
    changes: PartnerChanges,
    access: changing,
    find: async (id) => found(await companies.findCompany(deps, "partner", id)),
    body: Type.Omit(PartnerBody, ["external_id"], {
      ...closed,
      title: "PlatformPartner",
      examples: [{ name: "Stellar Partners" }],
    }),
    findExternal: async (externalId) => {
      const partner = await companyBy(deps.db, "partner", { externalId });
      return partner && found(partner);
    },
    createErrors: (body) => companies.partnerErrors(deps, body),
    create: async (caller, body) =>
      showPartner(await companies.createPartner(deps, caller, validBody(PartnerBody, body))),
  };
}

function accounts(deps: AdminRouteDeps): SyncedKind<"/accounts"> {
  const found = (account: Company): FoundRecord => ({
    shown: showAccount(account),
    fixed: { partner_id: account.partnerId },
    changeErrors: (body) => companies.accountErrors(deps, body),
    change: async (caller, body) =>
      showAccount(await companies.changeAccount(deps, caller, account, body)),
    remove: (caller) => companies.deleteCompany(deps, caller, account),
  });
  return {
    path: "/accounts",
    data: "accounts",
    name: "an account",
    operation: "Account",
    object: AccountObject,
    changes: AccountChanges,
    access: changing,
    find: async (id) => found(await companies.findCompany(deps, "account", id)),
    // The body contains no `stores`, because stores are synchronized as separate records.
    body: Type.Omit(AccountBody, ["external_id", "stores"], {
      ...closed,
      title: "PlatformAccount",
      examples: [{ name: "Harbour Café", partner_id: 7, plan_id: 4 }],
    }),
    findExternal: async (externalId) => {
      const account = await companyBy(deps.db, "account", { externalId });
      return account && found(account);
    },
    createErrors: (body) => companies.accountErrors(deps, body),
    create: async (caller, body) =>
      showAccount(await companies.createAccount(deps, caller, validBody(AccountBody, body))),
  };
}

function plans(deps: AdminRouteDeps): RecordKind<"/plans"> {
  const found = (plan: Plan): FoundRecord => ({
    shown: plan,
    changeErrors: (body) => stores.planErrors(deps, body, plan),
    change: (caller, body) => stores.changePlan(deps, caller, plan, body),
    remove: (caller) => stores.deletePlan(deps, caller, plan),
  });
  return {
    path: "/plans",
    data: null,
    name: "a plan",
    operation: "Plan",
    object: planObject,
    changes: PlanChanges,
    access: provisioning,
    find: async (id) => found(await stores.findPlan(deps, id)),
  };
}

function storeKind(deps: AdminRouteDeps): SyncedKind<"/stores"> {
  const show = async (store: Store) => {
    const linksOf = await linksOfStores(deps.db, [store]);
    const reviewedAt = await latestReviews(deps.db, store);
    const withReview = (one: StoreReviewSite) => ({
      ...one,
      lastReviewAt: reviewedAt.get(one.id) ?? null,
    });
    return showStore(store, linksOf(store).map(withReview));
  };
  const found = async (store: Store): Promise<FoundRecord> => ({
    shown: await show(store),
    fixed: { account_id: store.accountId },
    change: async (caller, body) => show(await stores.changeStore(deps, caller, store, body)),
    remove: (caller) => stores.deleteStore(deps, caller, store),
  });
  return {
    path: "/stores",
    data: "stores",
    name: "a store",
    operation: "Store",
    object: StoreObject,
    changes: StoreChanges,
    access: provisioning,
    find: async (id) => found(await stores.findStore(deps, id)),
    body: Type.Omit(StoreBody, ["external_id"], {
      ...closed,
      title: "PlatformStore",
      examples: [{ account_id: 12, name: "Main Street" }],
    }),
    findExternal: async (externalId) => {
      const store = await storeBy(deps.db, { externalId });
      return store && found(store);
    },
    createErrors: (body) => stores.newStoreErrors(deps, body),
    create: async (caller, body) =>
      show(await stores.createStore(deps, caller, validBody(StoreBody, body))),
  };
}

function connections(deps: AdminRouteDeps): SyncedKind<"/store-review-sites"> {
  const found = (connection: StoreReviewSite): FoundRecord => ({
    shown: showStoreReviewSite(connection),
    fixed: { store_id: connection.storeId, provider_id: connection.providerId },
    change: async (caller, body) =>
      showStoreReviewSite(await stores.changeStoreReviewSite(deps, caller, connection, body)),
    remove: (caller) => stores.deleteStoreReviewSite(deps, caller, connection),
  });
  return {
    path: "/store-review-sites",
    data: "store-review-sites",
    name: "a connection of a store to a review site",
    operation: "StoreReviewSite",
    object: StoreReviewSiteObject,
    changes: StoreReviewSiteChanges,
    access: provisioning,
    find: async (id) => found(await stores.findStoreReviewSite(deps, id)),
    body: Type.Omit(StoreReviewSiteBody, ["external_id"], {
      ...closed,
      title: "PlatformStoreReviewSite",
    }),
    findExternal: async (externalId) => {
      const connection = await storeReviewSiteBy(deps.db, { externalId });
      return connection && found(connection);
    },
    createErrors: (body) => stores.newStoreReviewSiteErrors(deps, body),
    create: async (caller, body) => {
      const wanted = validBody(StoreReviewSiteBody, body);
      return showStoreReviewSite(await stores.createStoreReviewSite(deps, caller, wanted));
    },
  };
}

function userKind(deps: AdminRouteDeps): SyncedKind<"/users"> {
  const show = shownAs(UserObject);
  const found = (user: User): FoundRecord => ({
    shown: show(user),
    fixed: { company_id: user.companyId },
    changeErrors: (body) => users.userUpdateErrors(deps, user, body),
    change: async (caller, body) => show(await users.changeUser(deps, caller, user, body)),
    remove: (caller) => users.deleteUser(deps, caller, user),
  });
  return {
    path: "/users",
    data: "users",
    name: "a user",
    operation: "User",
    object: UserObject,
    changes: UserChanges,
    conflicts: ["user_erased"],
    access: changing,
    find: async (id) => found(await users.findUser(deps, id)),
    body: Type.Omit(UserBody, ["external_id", "password"], {
      ...closed,
      title: "PlatformUser",
      examples: [
        {
          company_id: 7,
          email: "owner@partner.example",
          name: "Zoë O’Neil",
          role: "partner_owner",
        },
      ],
    }),
    findExternal: async (externalId) => {
      const user = await userBy(deps.db, { externalId });
      return user && found(user);
    },
    createErrors: (body) => users.newUserErrors(deps, body),
    create: async (caller, body) =>
      show(await users.createUser(deps, caller, validBody(UserBody, body))),
  };
}

function providers(deps: AdminRouteDeps): RecordKind<"/providers"> {
  const show = shownAs(ProviderObject);
  const found = (provider: Provider): FoundRecord => ({
    shown: show(provider),
    change: async (caller, body) => show(await stores.changeProvider(deps, caller, provider, body)),
    remove: (caller) => stores.deleteProvider(deps, caller, provider),
  });
  return {
    path: "/providers",
    data: null,
    name: "a provider",
    operation: "Provider",
    object: ProviderObject,
    changes: ProviderChanges,
    access: changing,
    find: async (id) => found(await stores.findProvider(deps, id)),
  };
}
