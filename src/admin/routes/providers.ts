import { Type } from "@sinclair/typebox";

import { finds } from "../../http/finds.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { isRowId, listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import type { Judged } from "../../http/rules.ts";
import * as actions from "../actions/providers.ts";
import { ProviderBody, ProviderObject, ProviderWithSecret, showProvider } from "../model.ts";
import { administrating, adminRoutesBase, changing, type AdminRouteDeps } from "./base.ts";

/** Contract 10.2: the review sites that report events, and the secrets that they sign with. */
export function providerAdminRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/providers")
    .macro(finds("provider", ({ params }) => actions.findProvider(deps, params["id"])))
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await actions.listProviders(deps, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showProvider });
      },
      {
        access: administrating,
        query: Type.Object(pageQuery(isRowId)),
        response: { 200: listSchema(ProviderObject) },
        detail: {
          operationId: "listProviders",
          summary: "List providers, newest first",
          description: "The review sites that report here.",
        },
      },
    )
    .post(
      "",
      async ({ principal, call, body, status }) =>
        status(201, await actions.createProvider(deps, { principal, call }, body)),
      {
        access: changing,
        body: ProviderBody,
        rules: ({ body }: Judged<typeof ProviderBody>) => actions.newProviderFaults(deps, body),
        response: { 201: ProviderWithSecret },
        detail: {
          operationId: "createProvider",
          summary: "Create a provider; its secret is shown once",
          description: "What it reports is signed with the secret.",
        },
      },
    )
    .post(
      "/:id/secret",
      ({ principal, call, provider }) =>
        actions.rotateProviderSecret(deps, { principal, call }, provider),
      {
        access: changing,
        provider: true,
        body: NO_FIELDS,
        response: { 200: ProviderWithSecret },
        detail: {
          operationId: "rotateProviderSecret",
          summary: "Rotate the secret of a provider; it is shown once",
          description: "The secret until now stops working at once.",
        },
      },
    );
}
