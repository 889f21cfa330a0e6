import { Box, Button, Group } from "@mantine/core";
import type { ReactNode } from "react";

import { allPages, answerOf, type ApiClient, atCursor, ended } from "../../api/client.ts";
import { useApi, useSessionState } from "../../session/session.tsx";
import { Tag } from "../../ui/badges.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { Icon } from "../../ui/icon.tsx";
import { CellText, Dimmed, Facts, Section } from "../../ui/layout.tsx";
import { List, rowsOf } from "../../ui/list.tsx";
import { ALL_PAGES, listOptions, type RowOf, useList, useRefresh } from "../../ui/pages.ts";
import { ExactTime, Time } from "../../ui/time.tsx";
import { deviceOf } from "../../ui/format.ts";

const PAGE = 20;
const WHOLE_PAGE = 100;

function readPage(api: ApiClient, limit: number, cursor: string | undefined) {
  return answerOf(api.account.sessions.get({ query: { limit, ...atCursor(cursor) } }));
}

const sessionsOptions = (api: ApiClient) =>
  listOptions(["sessions"], (cursor) => readPage(api, PAGE, cursor), ALL_PAGES);

/** Session of the signed-in user, as the API lists it. Sessions whose token is no longer valid are not listed. */
type OwnSession = RowOf<typeof sessionsOptions>;

/** Requests that end the user's own sessions. Each request invalidates the cached session list. */
function useSessionActions() {
  const api = useApi();
  const { andRead, refresh } = useRefresh(sessionsOptions(api).queryKey);
  const endSession = ({ id }: OwnSession) => ended(api.account.sessions({ id }).delete());
  return {
    end: (one: OwnSession) => andRead(endSession(one)),
    /**
     * Ends all other sessions of the user. Reads the complete list first, because the page may show only a part
     * of it.
     */
    endOthers: async () => {
      try {
        const sessions = await allPages((cursor) => readPage(api, WHOLE_PAGE, cursor));
        for (const one of sessions) if (!one.is_current) await endSession(one);
      } finally {
        await refresh();
      }
    },
  };
}

/** Words for the way in which a session began. Others than the user read them, too. */
const METHODS: Readonly<Record<string, string>> = {
  login: "With email and password",
  sso: "With single sign-on",
  password_reset: "With a new password",
  password_grant: "An app, with the password",
  authorization_code: "An app, with consent",
  portal: "A portal link",
};

/** Returns how a session began, and whether a second factor was proved in it. */
/** A session is used when it begins, which its last use does not count. */
const usedAt = ({ last_used_at: used, created_at: created }: OwnSession) => used ?? created;

function methodOf({ method, factor_at: factorAt }: OwnSession): string {
  const words = METHODS[method] ?? method;
  return factorAt === null || method === "sso" ? words : `${words}, plus a second factor`;
}

export function SessionsSection() {
  const sessions = useList(sessionsOptions(useApi()));
  const { end } = useSessionActions();
  const hasOthers = rowsOf(sessions).some((one) => !one.is_current);
  return (
    <Section
      title="Where you are signed in"
      description="Browsers and apps with an active session. End any that you don't recognize, then change your password."
      actions={hasOthers && <EndOthers />}
    >
      <List list={sessions} more="Show older">
        {(rows) => (
          <DataTable
            caption="Sessions"
            rows={rows}
            rowKey={({ id }) => id}
            end="Actions"
            columns={(one) => sessionColumns(one, end)}
          />
        )}
      </List>
    </Section>
  );
}

function EndOthers() {
  const { endOthers } = useSessionActions();
  return (
    <ConfirmedAction
      label="End all others"
      title="End all other sessions?"
      action="End all others"
      danger
      onConfirm={endOthers}
      done="All other sessions ended."
    >
      Every other browser and app of yours is signed out immediately. API tokens stay; you find them
      under API Keys.
    </ConfirmedAction>
  );
}

/** Session in a list: of the signed-in user's own sessions, or of the sessions of a team. */
type ListedSession = OwnSession & { readonly user_name?: string };

/**
 * Returns the cells of a session by column, with a button that ends the session. In the list of a team the cells also
 * contain the name of the user.
 */
export function sessionColumns(
  session: ListedSession,
  onEnd: (session: OwnSession) => Promise<unknown>,
): Readonly<Record<string, ReactNode>> {
  const { is_current: isCurrent, ip, user_agent: userAgent, client_id: clientId } = session;
  const device = deviceOf(userAgent);
  return {
    Session: (
      <Group gap="xs" wrap="nowrap" title={userAgent ?? undefined}>
        <Icon name={clientId === null ? "user" : "plug"} size={16} />
        <div>
          <Group gap="xs" wrap="nowrap">
            <CellText title={session.user_name ?? device} />
            {isCurrent && <Tag color="teal">This session</Tag>}
          </Group>
          <Dimmed>
            {session.user_name !== undefined && `${device}. `}
            {methodOf(session)}
            {clientId !== null && `, client ${clientId}`}
          </Dimmed>
        </div>
      </Group>
    ),
    "IP address": ip ?? "Unknown",
    Since: <ExactTime at={session.created_at} />,
    "Last used": isCurrent ? "Now" : <Time at={usedAt(session)} />,
    Ends: <Time at={session.expires_at} mayBeAhead />,
    Actions: isCurrent ? <SignOut /> : <EndSession session={session} onEnd={onEnd} />,
  };
}

function SignOut() {
  const { signOut } = useSessionState();
  return (
    <Button variant="default" size="xs" onClick={signOut} aria-label="Sign out of this session">
      Sign out
    </Button>
  );
}

interface EndSessionProps {
  readonly session: ListedSession;
  readonly onEnd: (session: OwnSession) => Promise<unknown>;
}

function EndSession({ session, onEnd }: EndSessionProps) {
  const { user_name: user } = session;
  const device = deviceOf(session.user_agent);
  const name = user === undefined ? device : `${user}, ${device}`;
  return (
    <ConfirmedAction
      label="End"
      button={{ size: "xs", "aria-label": `End the session of ${name}` }}
      title="End this session?"
      action="End the session"
      danger
      onConfirm={() => onEnd(session)}
      done="Session ended."
    >
      {user === undefined
        ? `${device} is signed out immediately.`
        : `${user} is signed out of ${device} immediately. Everything created with this session ends as well, except the personal access tokens below.`}
      <Box mt="sm">
        <Facts
          facts={[
            ["Signed in", methodOf(session)],
            ["IP address", session.ip ?? "Unknown"],
            ["Since", <ExactTime key="since" at={session.created_at} />],
            ["Last used", <Time key="used" at={usedAt(session)} />],
          ]}
        />
      </Box>
    </ConfirmedAction>
  );
}
