import { Box, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { useApi, useSession } from "../../session/session.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Section, useFocusFallback } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import type { TeamUser } from "../partner/data.ts";
import { sessionColumns } from "../security/sessions.tsx";
import { IdentitiesSection, identitiesOptions } from "../users/identities.tsx";
import { teamSessionsOptions, teamTokensOptions, useAccessActions, wholeOptions } from "./data.ts";
import { tokenColumns } from "./tokens.tsx";

const LIST_FORMAT = new Intl.ListFormat("en", { type: "disjunction" });

interface MemberAccessProps {
  readonly user: TeamUser;
  readonly isOwner: boolean;
}

/**
 * Sections with the sessions, tokens and identities of one member of the team. One line names those that the member has
 * none of. Only owners see sessions and identities.
 */
export function MemberAccess({ user, isOwner }: MemberAccessProps) {
  const api = useApi();
  const { user: me, company } = useSession();
  const { endSession } = useAccessActions();
  const isTheirs = (one: { readonly user_id: number }) => one.user_id === user.id;
  const sessions = useQuery({
    ...wholeOptions(teamSessionsOptions(api, company.type)),
    enabled: isOwner,
    select: (rows) => rows.filter(isTheirs),
  });
  const tokens = useQuery({
    ...wholeOptions(teamTokensOptions(api, company.type)),
    select: (rows) => rows.filter(isTheirs),
  });
  const identities = useQuery({ ...identitiesOptions(api, "partner", user.id), enabled: isOwner });
  const parts = [
    [sessions, "active sessions"],
    [tokens, "tokens"],
    [identities, "single sign-on"],
  ] as const;
  const missing = parts.filter(([{ data }]) => data?.length === 0).map(([, name]) => name);
  // The section of the last session disappears when it is ended.
  const container = useFocusFallback(missing.join());
  return (
    <Box component="section" ref={container} tabIndex={-1}>
      <Stack gap="lg">
        {isOwner && sessions.data?.length !== 0 && (
          <Section
            title="Active sessions"
            description="Browsers and apps with an active session. End any that you don't recognize."
          >
            <Loaded query={sessions}>
              {(rows) => (
                <DataTable
                  caption="Sessions"
                  rows={rows}
                  rowKey={({ id }) => id}
                  end="Actions"
                  columns={(session) => {
                    const { user_name: _, ...one } = session;
                    return sessionColumns(one, endSession);
                  }}
                />
              )}
            </Loaded>
          </Section>
        )}
        {tokens.data?.length !== 0 && (
          <Section title="Tokens" description="Tokens that work without a sign-in.">
            <Loaded query={tokens}>
              {(rows) => (
                <DataTable
                  caption="Tokens"
                  rows={rows}
                  rowKey={({ id }) => id}
                  end="Actions"
                  columns={(one) => tokenColumns(one, isOwner || user.id === me.id)}
                />
              )}
            </Loaded>
          </Section>
        )}
        {isOwner && identities.data?.length !== 0 && (
          <IdentitiesSection area="partner" user={user} />
        )}
        {missing.length > 0 && (
          <Section title="Access" description={`No ${LIST_FORMAT.format(missing)}.`} />
        )}
      </Stack>
    </Box>
  );
}
