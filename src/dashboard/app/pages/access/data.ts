import { queryOptions } from "@tanstack/react-query";

import { allPages, answerOf, type ApiClient, ended, pageAt } from "../../api/client.ts";
import type { Session } from "../../session/identity.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { type ListOptions, listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";

export type CompanyType = Session["company"]["type"];

/**
 * Returns the API routes for the sessions and tokens of the company's users. They depend on the type of the company.
 */
function routesOf(api: ApiClient, type: CompanyType) {
  return type === "account"
    ? { sessions: api.account["team-sessions"], tokens: api.account["team-tokens"] }
    : { sessions: api.partner.sessions, tokens: api.partner.tokens };
}

export const teamSessionsOptions = (api: ApiClient, type: CompanyType) =>
  listOptions(["team-sessions"], (cursor) =>
    answerOf(routesOf(api, type).sessions.get({ query: pageAt(cursor) })),
  );

export const teamTokensOptions = (api: ApiClient, type: CompanyType) =>
  listOptions(["team-tokens"], (cursor) =>
    answerOf(routesOf(api, type).tokens.get({ query: pageAt(cursor) })),
  );

/** Reads a whole list of the team, for the page of one member: the API has no filter by user. */
export const wholeOptions = <Row>({ queryKey, load }: ListOptions<Row>) =>
  queryOptions({
    queryKey: [...queryKey, "whole"],
    queryFn: () =>
      allPages(async (cursor) => {
        const { rows, next } = await load(cursor);
        return { data: rows, next_cursor: next };
      }),
  });

type TeamSession = RowOf<typeof teamSessionsOptions>;
export type TeamToken = RowOf<typeof teamTokensOptions>;

/** Requests that end a session or a token of a user of the company. */
export function useAccessActions() {
  const api = useApi();
  const { company } = useSession();
  const { sessions, tokens } = routesOf(api, company.type);
  const ofSessions = useRefresh(["team-sessions"]);
  const ofTokens = useRefresh(["team-tokens"]);
  return {
    endSession: ({ id }: Pick<TeamSession, "id">) =>
      ofSessions.andRead(ended(sessions({ id }).delete())),
    endToken: ({ id }: TeamToken) => ofTokens.andRead(ended(tokens({ id }).delete())),
  };
}
