import { Stack } from "@mantine/core";

import { useApi, useSession } from "../../session/session.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { PageHeader, Section } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { deviceOf } from "../../ui/user-agent.ts";
import { sessionColumns } from "../security/sessions.tsx";
import { Requirement } from "./requirement.tsx";
import { type TeamSession, teamSessionsOptions, useAccessActions } from "./data.ts";
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
          columns: (one) => sessionColumns(one, <EndTeamSession session={one} />),
        }}
      />
    </Section>
  );
}

function EndTeamSession({ session }: { readonly session: TeamSession }) {
  const { endSession } = useAccessActions();
  const device = deviceOf(session.user_agent);
  return (
    <ConfirmedAction
      label="End"
      button={{ size: "xs", "aria-label": `End the session of ${session.user_name}, ${device}` }}
      title="End this session?"
      action="End the session"
      danger
      onConfirm={() => endSession(session)}
      done="The session is ended."
    >
      {session.user_name} is signed out of {device} immediately. Everything created with this
      session ends as well, except the personal tokens below.
    </ConfirmedAction>
  );
}
