import { inPerson } from "../../auth/access/guard.ts";
import { shown } from "../../http/shown.ts";
import { searchRecords } from "../queries/search.ts";
import { SearchAnswer, SearchBody } from "../search-model.ts";
import { administrating, type AdminRouteDeps, adminRoutesBase } from "./base.ts";

/**
 * Defines the route with which an operator finds records of all companies (contract 10.11). It is a POST, so that the
 * searched text is in no address that a proxy logs.
 */
export function searchRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/search").post(
    "",
    async ({ body }) => shown(SearchAnswer, { data: await searchRecords(deps.db, body.q) }),
    {
      access: inPerson(administrating),
      auditedRead: "search",
      body: SearchBody,
      response: { 200: SearchAnswer },
      detail: {
        operationId: "search",
        summary: "Find records of all companies",
        description: "At most five of each kind.",
      },
    },
  );
}
