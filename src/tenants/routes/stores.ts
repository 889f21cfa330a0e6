import { join } from "../../http/join.ts";
import { Type } from "@sinclair/typebox";

import { planObject } from "../../auth/model.ts";
import { loads } from "../../http/request-state.ts";
import {
  type Found,
  listOf,
  listSchema,
  type Page,
  pageOf,
  pageQuery,
  searchPageAnswer,
} from "../../http/list.ts";
import { isRowId } from "../../http/ids.ts";
import { shown, shownAs } from "../../http/shown.ts";
import type { RuleInput } from "../../http/rules.ts";
import * as actions from "../actions/stores.ts";
import * as queries from "../queries/stores.ts";
import {
  PlanBody,
  ProviderBody,
  ProviderObject,
  ProviderRotation,
  ProviderWithSecret,
  showStore,
  showStoreReviewSite,
  type Store,
  StoreBody,
  StoreObject,
  storeQuery,
  StoreReviewSiteBody,
  StoreReviewSiteObject,
  storeReviewSiteQuery,
} from "../store-model.ts";
import {
  administrating,
  type AdminRouteDeps,
  adminRoutesBase,
  changing,
  provisioning,
} from "./base.ts";

/** The grace period in hours of a provider's previous secret if the request names none. */
const GRACE_HOURS = 24;

/**
 * Defines the administrative routes for plans, stores, and the connections of stores to review sites (contract 10.1
 * and 10.2).
 */
export function storeRoutes(deps: AdminRouteDeps) {
  return join(planRoutes(deps), ownStoreRoutes(deps), linkRoutes(deps));
}

function planRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/plans")
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await queries.plansOf(deps.db, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: (plan) => plan });
      },
      {
        access: administrating,
        query: Type.Object(pageQuery(isRowId)),
        response: { 200: listSchema(planObject) },
        detail: {
          operationId: "listPlans",
          summary: "List plans, newest first",
          description: "Every account has one of these plans.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(201, await actions.createPlan(deps, { principal, requestContext }, body)),
      {
        access: provisioning,
        body: PlanBody,
        rules: ({ body }: RuleInput<typeof PlanBody>) => actions.planErrors(deps, body),
        response: { 201: planObject },
        detail: {
          operationId: "createPlan",
          summary: "Create a plan",
          description: "New accounts can use it.",
        },
      },
    );
}

/** Builds the response with a page of stores and their connections, which it reads with one statement. */
export async function storePage(
  { db }: Pick<AdminRouteDeps, "db">,
  found: Found<Store>,
  page: Page,
) {
  const linksOf = await queries.linksOfStores(db, found.rows);
  return searchPageAnswer(found, page, {
    key: ({ id }) => String(id),
    show: (store) => showStore(store, linksOf(store)),
  });
}

function ownStoreRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/stores")
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        return storePage(deps, await queries.storesOf(deps.db, query, page), page);
      },
      {
        access: administrating,
        auditedRead: "stores",
        query: storeQuery,
        response: { 200: listSchema(StoreObject) },
        detail: {
          operationId: "listStores",
          summary: "List stores, newest first",
          description: "`account_id` restricts the list.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(
          201,
          showStore(await actions.createStore(deps, { principal, requestContext }, body), []),
        ),
      {
        access: provisioning,
        body: StoreBody,
        rules: ({ body }: RuleInput<typeof StoreBody>) => actions.newStoreErrors(deps, body),
        response: { 201: StoreObject },
        detail: {
          operationId: "createStore",
          summary: "Create a store of an account",
          description: "The store has no review sites at first.",
        },
      },
    );
}

function linkRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/store-review-sites")
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await queries.storeReviewSitesOf(deps.db, query, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showStoreReviewSite });
      },
      {
        access: administrating,
        auditedRead: "store-review-sites",
        query: storeReviewSiteQuery,
        response: { 200: listSchema(StoreReviewSiteObject) },
        detail: {
          operationId: "listStoreReviewSites",
          summary: "List the connections of stores to review sites, newest first",
          description: "Filters: account and store.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) => {
        const made = await actions.createStoreReviewSite(deps, { principal, requestContext }, body);
        return status(201, showStoreReviewSite(made));
      },
      {
        access: provisioning,
        body: StoreReviewSiteBody,
        rules: ({ body }: RuleInput<typeof StoreReviewSiteBody>) =>
          actions.newStoreReviewSiteErrors(deps, body),
        response: { 201: StoreReviewSiteObject },
        detail: {
          operationId: "createStoreReviewSite",
          summary: "Connect a store to a review site",
          description: "The review site reports events with the id of the connection.",
        },
      },
    );
}

/**
 * Defines the administrative routes for providers, which are the review sites that report events, and for the
 * rotation of their secrets (contract 10.2).
 */
export function providerAdminRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/providers")
    .macro(loads("provider", ({ params }) => actions.findProvider(deps, params["id"])))
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await actions.listProviders(deps, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: shownAs(ProviderObject) });
      },
      {
        access: administrating,
        query: Type.Object(pageQuery(isRowId)),
        response: { 200: listSchema(ProviderObject) },
        detail: {
          operationId: "listProviders",
          summary: "List providers, newest first",
          description: "Providers are the review sites that report events.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) => {
        const made = await actions.createProvider(deps, { principal, requestContext }, body);
        return status(201, shown(ProviderWithSecret, made));
      },
      {
        access: changing,
        body: ProviderBody,
        rules: ({ body }: RuleInput<typeof ProviderBody>) => actions.newProviderErrors(deps, body),
        response: { 201: ProviderWithSecret },
        detail: {
          operationId: "createProvider",
          summary: "Create a provider; its secret is shown once",
          description: "The provider signs its events with the secret.",
        },
      },
    )
    .post(
      "/:id/secret",
      async ({ principal, requestContext, provider, body }) => {
        const { grace_period_hours: hours = GRACE_HOURS } = body;
        const caller = { principal, requestContext };
        const rotated = await actions.rotateProviderSecret(deps, caller, provider, hours);
        return shown(ProviderWithSecret, rotated);
      },
      {
        access: { ...changing, mayBeEmpty: true },
        provider: true,
        body: ProviderRotation,
        response: { 200: ProviderWithSecret },
        detail: {
          operationId: "rotateProviderSecret",
          summary: "Rotate the secret of a provider; it is shown once",
          description: "The current secret stays valid for `grace_period_hours`.",
        },
      },
    );
}
