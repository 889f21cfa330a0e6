import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { planObject } from "../../auth/model.ts";
import { isRowId, listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import type { Judged } from "../../http/rules.ts";
import * as actions from "../actions/stores.ts";
import {
  PlanBody,
  showStore,
  showStoreReviewSite,
  StoreBody,
  StoreObject,
  storeQuery,
  StoreReviewSiteBody,
  StoreReviewSiteObject,
  storeReviewSiteQuery,
} from "../store-model.ts";
import { administrating, adminRoutesBase, provisioning, type AdminRouteDeps } from "./base.ts";

/** Contract 10.1 and 10.2: plans, stores, and the links of stores to review sites. */
export function storeRoutes(deps: AdminRouteDeps) {
  return new Elysia().use(planRoutes(deps)).use(ownStoreRoutes(deps)).use(linkRoutes(deps));
}

function planRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/plans")
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await actions.listPlans(deps, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: (plan) => plan });
      },
      {
        access: administrating,
        query: Type.Object(pageQuery(isRowId)),
        response: { 200: listSchema(planObject) },
        detail: {
          operationId: "listPlans",
          summary: "List plans, newest first",
          description: "What an account can have.",
        },
      },
    )
    .post(
      "",
      async ({ principal, call, body, status }) =>
        status(201, await actions.createPlan(deps, { principal, call }, body)),
      {
        access: provisioning,
        body: PlanBody,
        rules: ({ body }: Judged<typeof PlanBody>) => actions.newPlanFaults(deps, body),
        response: { 201: planObject },
        detail: {
          operationId: "createPlan",
          summary: "Create a plan",
          description: "Accounts made later can have it.",
        },
      },
    );
}

function ownStoreRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/stores")
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await actions.listStores(deps, query, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showStore });
      },
      {
        access: administrating,
        query: storeQuery,
        response: { 200: listSchema(StoreObject) },
        detail: {
          operationId: "listStores",
          summary: "List stores, newest first",
          description: "Of every account, or of one.",
        },
      },
    )
    .post(
      "",
      async ({ principal, call, body, status }) =>
        status(201, showStore(await actions.createStore(deps, { principal, call }, body))),
      {
        access: provisioning,
        body: StoreBody,
        rules: ({ body }: Judged<typeof StoreBody>) => actions.newStoreFaults(deps, body),
        response: { 201: StoreObject },
        detail: {
          operationId: "createStore",
          summary: "Create a store of an account",
          description: "Without review sites at first.",
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
        const rows = await actions.listStoreReviewSites(deps, query, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showStoreReviewSite });
      },
      {
        access: administrating,
        query: storeReviewSiteQuery,
        response: { 200: listSchema(StoreReviewSiteObject) },
        detail: {
          operationId: "listStoreReviewSites",
          summary: "List the connections of stores to review sites, newest first",
          description: "Of every account and store, or of one.",
        },
      },
    )
    .post(
      "",
      async ({ principal, call, body, status }) => {
        const made = await actions.createStoreReviewSite(deps, { principal, call }, body);
        return status(201, showStoreReviewSite(made));
      },
      {
        access: provisioning,
        body: StoreReviewSiteBody,
        rules: ({ body }: Judged<typeof StoreReviewSiteBody>) =>
          actions.newStoreReviewSiteFaults(deps, body),
        response: { 201: StoreReviewSiteObject },
        detail: {
          operationId: "createStoreReviewSite",
          summary: "Connect a store to a review site",
          description: "The review site reports under its id.",
        },
      },
    );
}
