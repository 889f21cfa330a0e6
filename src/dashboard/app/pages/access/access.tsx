import { Stack, Switch } from "@mantine/core";
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { answerOf, type ApiClient } from "../../api/client.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Dimmed, PageHeader, Section } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { Loaded } from "../../ui/states.tsx";
import { sessionColumns } from "../security/sessions.tsx";
import {
  type CompanyType,
  teamSessionsOptions,
  teamTokensOptions,
  useAccessActions,
} from "./data.ts";
import { tokenColumns } from "./tokens.tsx";

/**
 * Page with the sessions and tokens of the users of a partner or an account. Users who are not owners see only the
 * tokens.
 */
export function Page() {
  const { user, company } = useSession();
  const isOwner = user.role === "partner_owner" || user.role === "account_owner";
  return (
    <>
      <PageHeader
        title="Team access"
        description={
          isOwner
            ? `Sign-in requirements, active sessions and tokens of your team.${company.type === "account" ? " People are added and removed by the company that gave you access." : ""}`
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
      description="Browsers and apps with an active session. End any that you don't recognize and ask the user to change the password."
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
                  ? "Two-step verification no longer required."
                  : "Two-step verification required."
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
      description="Revoke any token used from an IP address that you don't recognize."
    >
      <TableList
        list={useList(teamTokensOptions(useApi(), company.type))}
        noun={["token", "tokens"]}
        empty={<Dimmed size="sm">Your team has no tokens.</Dimmed>}
        table={{
          caption: "Tokens of the team, newest first",
          end: "Actions",
          columns: (one) => tokenColumns(one, isOwner || one.user_id === me.id),
        }}
      />
    </Section>
  );
}
