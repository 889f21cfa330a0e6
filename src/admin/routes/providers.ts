import { Type } from "@sinclair/typebox";

import { superAdmin } from "../../auth/guard.ts";
import { isRowId, listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import { Answer, route } from "../../http/route.ts";
import type { AdminDeps } from "../actions/deps.ts";
import * as actions from "../actions/providers.ts";
import { ProviderBody, ProviderObject, ProviderWithSecret, showProvider } from "../model.ts";

const BASE = "/admin/providers";

/** decisions.md 7: the review sites that report events, and the secrets that they sign with. */
export function providerAdminRoutes(deps: AdminDeps) {
  return [
    route({
      method: "GET",
      path: BASE,
      summary: "List providers, newest first",
      access: superAdmin(),
      query: Type.Object(pageQuery(isRowId)),
      answers: { 200: listSchema(ProviderObject) },
      async handle({ query }) {
        const page = pageOf(query);
        const rows = await actions.listProviders(deps, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showProvider });
      },
    }),
    route({
      method: "POST",
      path: BASE,
      summary: "Create a provider; its secret is shown once",
      access: superAdmin(),
      body: ProviderBody,
      answers: { 201: ProviderWithSecret },
      rules: ({ body }) => actions.newProviderFaults(deps, body),
      handle: async ({ principal, call, body }) =>
        new Answer(201, await actions.createProvider(deps, { principal, call }, body)),
    }),
    route({
      method: "POST",
      path: `${BASE}/:id/secret`,
      summary: "Rotate the secret of a provider; it is shown once",
      description: "The secret until now stops working at once.",
      access: superAdmin(),
      answers: { 200: ProviderWithSecret },
      find: ({ params }) => actions.findProvider(deps, params["id"]),
      handle: ({ principal, call, found }) =>
        actions.rotateProviderSecret(deps, { principal, call }, found),
    }),
  ];
}
