import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { useApi, useSession } from "../../session/session.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Dimmed, Section } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { sessionColumns } from "../security/sessions.tsx";
import { teamSessionsOptions, teamTokensOptions, useAccessActions, wholeOptions } from "./data.ts";
import { tokenColumns } from "./tokens.tsx";

interface MemberAccessProps {
  readonly userId: number;
  readonly isOwner: boolean;
}

/** Sections with the sessions and tokens of one member of the team. Only owners see the sessions. */
export function MemberAccess({ userId, isOwner }: MemberAccessProps) {
  const api = useApi();
  const { user: me, company } = useSession();
  const { endSession } = useAccessActions();
  const sessions = useQuery({
    ...wholeOptions(teamSessionsOptions(api, company.type)),
    enabled: isOwner,
  });
  const tokens = useQuery(wholeOptions(teamTokensOptions(api, company.type)));
  const isTheirs = (one: { readonly user_id: number }) => one.user_id === userId;
  return (
    <>
      {isOwner && (
        <Section
          title="Active sessions"
          description="Browsers and apps with an active session. End any that you don’t recognize."
        >
          <Loaded query={sessions}>
            {(rows) => (
              <MemberTable
                caption="Sessions"
                rows={rows.filter(isTheirs)}
                columns={(session) => {
                  const { user_name: _, ...one } = session;
                  return sessionColumns(one, endSession);
                }}
                empty="Not signed in anywhere."
              />
            )}
          </Loaded>
        </Section>
      )}
      <Section title="Tokens" description="Tokens that work without a sign-in.">
        <Loaded query={tokens}>
          {(rows) => (
            <MemberTable
              caption="Tokens"
              rows={rows.filter(isTheirs)}
              columns={(one) => tokenColumns(one, isOwner || userId === me.id)}
              empty="No tokens."
            />
          )}
        </Loaded>
      </Section>
    </>
  );
}

interface MemberTableProps<Row> {
  readonly caption: string;
  readonly rows: readonly Row[];
  readonly columns: (row: Row) => Readonly<Record<string, ReactNode>>;
  readonly empty: string;
}

function MemberTable<Row extends { readonly id: string }>(props: MemberTableProps<Row>) {
  const { empty, ...table } = props;
  if (table.rows.length === 0) return <Dimmed size="sm">{empty}</Dimmed>;
  return <DataTable rowKey={({ id }) => id} end="Actions" {...table} />;
}
