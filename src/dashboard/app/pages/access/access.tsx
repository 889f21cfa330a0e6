import { Stack, Switch, Text } from "@mantine/core";
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { answerOf, type ApiClient, ended, pageAt } from "../../api/client.ts";
import type { Session } from "../../session/identity.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { Confirm, ConfirmedAction } from "../../ui/dialog.tsx";
import { counted } from "../../ui/format.ts";
import { PageHeader, Section, CellText, Dimmed } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList, listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";
import { Loaded } from "../../ui/states.tsx";
import { LastUsed, Time } from "../../ui/time.tsx";
import { sessionColumns } from "../security/sessions.tsx";

/**
 * Page with the sessions and tokens of the users of a partner or an account. Users who are not owners see only the
 * tokens.
 */
export function Page() {
  const { user } = useSession();
  const isOwner = user.role === "partner_owner" || user.role === "account_owner";
  return (
    <>
      <PageHeader
        title="Team access"
        description={
          isOwner
            ? "Sign-in requirements, active sessions and tokens of your team."
            : "Tokens of your team. Owners also see sessions."
        }
      />
      <Stack gap="lg">
        {isOwner && <Requirement />}
        {isOwner && <TeamSessions />}
        <TeamTokens isOwner={isOwner} />
      </Stack>
    </>
  );
}

function TeamSessions() {
  const { company } = useSession();
  const { endSession } = useAccessActions();
  return (
    <Section
      title="Active sessions of your team"
      description="Browsers and apps with an active session. End any that you don’t recognize and ask the user to change the password."
    >
      <TableList
        list={useList(teamSessionsOptions(useApi(), company.type))}
        noun={["sign-in", "sign-ins"]}
        table={{
          caption: "Sign-ins of the team",
          end: "Actions",
          columns: (one) => sessionColumns(one, endSession),
        }}
      />
    </Section>
  );
}

const securityOf = (api: ApiClient, type: CompanyType) =>
  type === "account" ? api.account.security : api.partner.security;

const policyOptions = (api: ApiClient, type: CompanyType) =>
  queryOptions({
    queryKey: ["security-policy"],
    queryFn: () => answerOf(securityOf(api, type).get()),
  });

/** Returns a function that saves whether the company requires a second factor of its users. */
function useSetRequired() {
  const api = useApi();
  const { type } = useSession().company;
  const queries = useQueryClient();
  return async (isRequired: boolean) => {
    const saved = await answerOf(
      securityOf(api, type).patch({ require_second_factor: isRequired }),
    );
    queries.setQueryData(policyOptions(api, type).queryKey, saved);
    await queries.invalidateQueries({ queryKey: ["second-factors"] });
  };
}

/** Switch that requires a second factor of the company's users. */
function Requirement() {
  const { company } = useSession();
  const setRequired = useSetRequired();
  const policy = useQuery(policyOptions(useApi(), company.type));
  const [asked, setAsked] = useState<boolean>();
  return (
    <Section
      title="Two-step verification"
      description="A passkey or an authenticator app in addition to the password. Users of your identity provider verify there."
    >
      <Loaded query={policy}>
        {({ require_second_factor: isRequired }) => (
          <>
            <Switch
              label="Require two-step verification"
              description={`For all users of ${company.name}${company.type === "partner" ? ", but not those of its accounts" : ""}.`}
              checked={isRequired}
              onChange={(event) => setAsked(event.currentTarget.checked)}
            />
            <Confirm
              opened={asked !== undefined}
              onClose={() => setAsked(undefined)}
              title={isRequired ? "Stop requiring it?" : "Require two-step verification?"}
              action={isRequired ? "Stop requiring it" : "Require it"}
              onConfirm={() => setRequired(!isRequired)}
              done={
                isRequired
                  ? "Two-step verification is no longer required."
                  : "Two-step verification is required."
              }
            >
              {isRequired
                ? "Users without a second factor sign in with their password only. Existing factors stay."
                : "Users without a second factor set one up at their next sign-in. Current sessions stay active, but users must confirm a second factor before they can view or change secrets, tokens, users and roles."}
            </Confirm>
          </>
        )}
      </Loaded>
    </Section>
  );
}

const KINDS: Readonly<Record<string, string>> = {
  dashboard_pat: "Personal access token from the dashboard",
  api_pat: "Personal access token from the API",
  impersonation: "Acts as the owner of an account",
};

const nameOf = ({ name, kind }: TeamToken) => name ?? KINDS[kind] ?? kind;

interface TeamTokensProps {
  /** True if the user may end everybody's tokens, and not only their own. */
  readonly isOwner: boolean;
}

/**
 * Lists the tokens of a company's users (API tokens, personal access tokens, impersonations) with the time of their
 * last use. Tokens of sign-in sessions are not listed.
 */
function TeamTokens({ isOwner }: TeamTokensProps) {
  const { user: me, company } = useSession();
  return (
    <Section
      title="Tokens in use"
      description="Revoke any token used from an IP address that you don’t recognize."
    >
      <TableList
        list={useList(teamTokensOptions(useApi(), company.type))}
        noun={["token", "tokens"]}
        empty={<Dimmed size="sm">Your team has no tokens.</Dimmed>}
        table={{
          caption: "Tokens of the team, newest first",
          end: "Change",
          columns: (one) => ({
            Token: (
              <CellText title={nameOf(one)}>
                {one.user_name}
                {one.name !== null && `, ${KINDS[one.kind] ?? one.kind}`}
              </CellText>
            ),
            "Last used": <LastUsed at={one.last_used_at} />,
            Where: <Uses token={one} />,
            Change: (isOwner || one.user_id === me.id) && <EndToken token={one} />,
          }),
        }}
      />
    </Section>
  );
}

interface TokenProps {
  readonly token: TeamToken;
}

function EndToken({ token }: TokenProps) {
  const { endToken } = useAccessActions();
  const name = nameOf(token);
  return (
    <ConfirmedAction
      label="Revoke"
      button={{ size: "xs", "aria-label": `Revoke the token of ${token.user_name}: ${name}` }}
      title="Revoke this token?"
      action="Revoke token"
      danger
      onConfirm={() => endToken(token)}
      done="The token is revoked."
    >
      Every program that uses <strong>{name}</strong> of {token.user_name} stops working
      immediately, and all tokens created with it are revoked. This cannot be undone.
    </ConfirmedAction>
  );
}

function Uses({ token: { uses } }: TokenProps) {
  const [newest] = uses;
  if (newest === undefined) return "Never used";
  const addresses = new Set(uses.map(({ ip }) => ip)).size;
  return (
    <details>
      <summary>
        {newest.ip}
        {addresses > 1 && ` and ${counted(addresses - 1, "other")}`}
      </summary>
      <Text size="sm" component="ul">
        {uses.map((use) => (
          <li key={`${use.route} ${use.ip}`}>
            <code>{use.route}</code> from {use.ip}, <Time at={use.last_used_at} />
          </li>
        ))}
      </Text>
    </details>
  );
}

type CompanyType = Session["company"]["type"];

/**
 * Returns the API routes for the sessions and tokens of the company's users. They depend on the type of the company.
 */
function routesOf(api: ApiClient, type: CompanyType) {
  return type === "account"
    ? { sessions: api.account["team-sessions"], tokens: api.account["team-tokens"] }
    : { sessions: api.partner.sessions, tokens: api.partner.tokens };
}

const teamSessionsOptions = (api: ApiClient, type: CompanyType) =>
  listOptions(["team-sessions"], (cursor) =>
    answerOf(routesOf(api, type).sessions.get({ query: pageAt(cursor) })),
  );

const teamTokensOptions = (api: ApiClient, type: CompanyType) =>
  listOptions(["team-tokens"], (cursor) =>
    answerOf(routesOf(api, type).tokens.get({ query: pageAt(cursor) })),
  );

type TeamSession = RowOf<typeof teamSessionsOptions>;
type TeamToken = RowOf<typeof teamTokensOptions>;

/** Requests that end a session or a token of a user of the company. */
function useAccessActions() {
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
