import { Type } from "@sinclair/typebox";

import { errorResponse } from "../../http/errors.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import { loads } from "../../http/request-state.ts";
import type { RuleInput } from "../../http/rules.ts";
import { shown, shownAs } from "../../http/shown.ts";
import { findCompany } from "../actions/companies.ts";
import { cancelDeletion, findDeletion, nameErrors, requestDeletion } from "../actions/deletions.ts";
import { erasureErrors, findErasure, requestErasure } from "../actions/erasures.ts";
import {
  DeletionBody,
  DeletionObject,
  ErasureBody,
  ErasureObject,
  erasureQuery,
} from "../erasure-model.ts";
import type { Company } from "../model.ts";
import { erasuresOf } from "../queries/erasures.ts";
import { administrating, adminRoutesBase, type AdminRouteDeps, changing } from "./base.ts";

/** Defines the routes that erase a person, and show the erasures (contract 10.8). */
export function erasureRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/erasures")
    .macro(loads("erasure", ({ params }) => findErasure(deps, params["id"])))
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await erasuresOf(deps.db, page);
        return listOf(rows, page, { key: ({ id }) => id, show: shownAs(ErasureObject) });
      },
      {
        access: administrating,
        query: erasureQuery,
        response: { 200: listSchema(ErasureObject) },
        detail: {
          operationId: "listErasures",
          summary: "List erasures, newest first",
          description: "None tells who was erased.",
        },
      },
    )
    .get("/:id", ({ erasure }) => shown(ErasureObject, erasure), {
      access: administrating,
      erasure: true,
      response: { 200: ErasureObject },
      detail: {
        operationId: "getErasure",
        summary: "Show an erasure",
        description: "Its state, and the numbers of rows so far.",
      },
    })
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(
          202,
          shown(ErasureObject, await requestErasure(deps, { principal, requestContext }, body)),
        ),
      {
        access: changing,
        body: ErasureBody,
        rules: ({ body }: RuleInput<typeof ErasureBody>) => erasureErrors(deps, body),
        response: {
          202: ErasureObject,
          409: errorResponse("last_owner", "last_super_admin", "own_user"),
        },
        detail: {
          operationId: "createErasure",
          summary: "Erase a user, or a reviewer by email address or reviews",
          description: "Cannot be undone. A user loses all access at once; the rest follows soon.",
        },
      },
    );
}

/** Defines the routes that delete a company with everything that belongs to it (contract 10.8). */
export function deletionRoutes(deps: AdminRouteDeps, type: Company["type"]) {
  const [kind, named] = type === "partner" ? ["Partner", "a partner"] : ["Account", "an account"];
  return adminRoutesBase(deps, type === "partner" ? "/partners" : "/accounts")
    .macro(loads("leaving", ({ params }) => findCompany(deps, type, params["id"])))
    .get(
      "/:id/deletion",
      async ({ leaving }) => shown(DeletionObject, await findDeletion(deps, leaving)),
      {
        access: administrating,
        leaving: true,
        response: { 200: DeletionObject },
        detail: {
          operationId: `getDeletionOf${kind}`,
          summary: `Show when ${named} is deleted`,
          description: "404 if it is not to be deleted.",
        },
      },
    )
    .post(
      "/:id/deletion",
      async ({ principal, requestContext, leaving, status }) =>
        status(
          202,
          shown(
            DeletionObject,
            await requestDeletion(deps, { principal, requestContext }, leaving),
          ),
        ),
      {
        access: changing,
        leaving: true,
        body: DeletionBody,
        rules: ({
          body,
          leaving,
        }: RuleInput<typeof DeletionBody> & { readonly leaving: Company }) =>
          nameErrors(body, leaving),
        response: { 202: DeletionObject, 409: errorResponse("company_active") },
        detail: {
          operationId: `requestDeletionOf${kind}`,
          summary: `Delete ${named} with everything that belongs to it, after a waiting time`,
          description: "It must be deactivated. Can be cancelled until the waiting time is over.",
        },
      },
    )
    .delete(
      "/:id/deletion",
      async ({ principal, requestContext, leaving, status }) => {
        await cancelDeletion(deps, { principal, requestContext }, leaving);
        return status(204, undefined);
      },
      {
        access: changing,
        leaving: true,
        response: { 204: Type.Void(), 409: errorResponse("deletion_running") },
        detail: {
          operationId: `cancelDeletionOf${kind}`,
          summary: `Keep ${named} that was to be deleted`,
          description: "It stays deactivated.",
        },
      },
    );
}
