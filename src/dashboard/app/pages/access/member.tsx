import { Box, Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { useApi, useSession } from "../../session/session.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Dimmed, Section, useFocusFallback } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import type { TeamUser } from "../partner/data.ts";
import { sessionColumns } from "../security/sessions.tsx";
import { IdentityTable, identitiesOptions } from "../users/identities.tsx";
import { teamSessionsOptions, teamTokensOptions, useAccessActions, wholeOptions } from "./data.ts";
import { tokenColumns } from "./tokens.tsx";

const LIST_FORMAT = new Intl.ListFormat("en", { type: "disjunction" });

interface MemberAccessProps {
  readonly user: TeamUser;
  readonly isOwner: boolean;
}

/**
 * Section with the sessions, tokens and identities of one member of the team. One line names those that the member has
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
      <Section
        title="Security"
        description={
          <>
            {user.has_password ? "Has a password." : "Has not set a password yet."}
            {missing.length > 0 && <> No {LIST_FORMAT.format(missing)}.</>}
          </>
        }
      >
        {isOwner && sessions.data?.length !== 0 && (
          <Part title="Active sessions" description="End any that you don't recognize.">
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
          </Part>
        )}
        {tokens.data?.length !== 0 && (
          <Part title="Tokens" description="They work without a sign-in.">
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
          </Part>
        )}
        {isOwner && identities.data?.length !== 0 && (
          <Part title="Single sign-on" description="Sign-ins with your identity provider.">
            <IdentityTable area="partner" user={user} />
          </Part>
        )}
      </Section>
    </Box>
  );
}

interface PartProps {
  readonly title: string;
  readonly description: string;
  readonly children: ReactNode;
}

/** Part of the section with a small heading. */
function Part({ title, description, children }: PartProps) {
  return (
    <Stack gap="xs">
      <div>
        <Title order={3} size="h5">
          {title}
        </Title>
        <Dimmed size="sm">{description}</Dimmed>
      </div>
      {children}
    </Stack>
  );
}
