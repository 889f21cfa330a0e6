import { type Static, Type } from "@sinclair/typebox";

import { isRowId } from "../http/ids.ts";
import { pageQuery } from "../http/list.ts";
import { scopeList } from "../http/principal.ts";
import type { RowOf } from "../http/shown.ts";
import { instantAnswer } from "../http/text.ts";
import { closed, displayName } from "./model.ts";

const settings = {
  name: displayName,
  scopes: scopeList,
};

export const IntegrationBody = Type.Object(settings, {
  ...closed,
  title: "IntegrationInput",
  examples: [{ name: "CRM", scopes: ["webhooks:read"] }],
});
export type NewIntegration = Static<typeof IntegrationBody>;

/** The body of a change of an integration: any subset of its fields. */
export const IntegrationChanges = Type.Partial(Type.Object(settings), {
  ...closed,
  title: "IntegrationChanges",
  examples: [{ scopes: ["webhooks:read"] }],
});
export type IntegrationUpdate = Static<typeof IntegrationChanges>;

export const integrationQuery = Type.Object(pageQuery(isRowId));

export const IntegrationObject = Type.Object(
  {
    id: Type.Integer(),
    name: Type.String(),
    scopes: Type.Array(Type.String()),
    created_at: instantAnswer(),
    updated_at: instantAnswer(),
  },
  {
    title: "Integration",
    examples: [{ id: 41, name: "CRM" }],
    description: "A program of a partner that calls this API.",
  },
);
export type Integration = RowOf<typeof IntegrationObject> & { readonly companyId: number };
