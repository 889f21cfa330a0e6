import { Stack } from "@mantine/core";

import { useApi, useSession } from "../../session/session.tsx";

import { PageHeader, Section } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";

import { sessionColumns } from "../security/sessions.tsx";
import { Requirement } from "./requirement.tsx";
import { teamSessionsOptions, useAccessActions } from "./data.ts";
import { TeamTokens } from "./team-tokens.tsx";

/** Page of what the people of a partner or an account are signed in with. Admins of a partner see the tokens only. */
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
      title="Where your people are signed in"
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
