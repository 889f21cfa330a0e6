import { Alert, Stack, Text } from "@mantine/core";
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import type { DataOf } from "../../api/client.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { counted } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Dimmed, Facts, Section } from "../../ui/layout.tsx";
import { List, rowsOf } from "../../ui/list.tsx";
import { type PagedList, type RowOf, useList } from "../../ui/pages.ts";
import { Loaded, Loading } from "../../ui/states.tsx";
import { factorColumns } from "../security/second-factors.tsx";
import { sessionColumns } from "../security/sessions.tsx";
import {
  type User,
  userFactorsOptions,
  userSessionsOptions,
  useUserActions,
} from "../users/data.ts";
import { identitiesOptions, IdentitiesSection } from "../users/identities.tsx";

interface UserProps {
  readonly user: User;
}

/**
 * Sections about the ways in which a user signs in: the sessions, the second factors and the identities. Those of which
 * the user has none share one section with a line each.
 */
export function AccessSections({ user }: UserProps) {
  const api = useApi();
  const isOperator = user.company.type === "platform";
  const sessions = useList(userSessionsOptions(api, user.id));
  const factors = useQuery(userFactorsOptions(api, user.id));
  const identities = useQuery({
    ...identitiesOptions(api, "admin", user.id),
    enabled: !isOperator,
  });
  const isRead = [sessions.pages, factors, identities].every((one) => !one.isLoading);
  if (!isRead) return <Loading />;
  const lines: [name: string, value: ReactNode][] = [];
  if (sessions.pages.isSuccess && sessions.slots.length === 0)
    lines.push(["Sessions", "Not signed in anywhere"]);
  if (factors.data?.factors.length === 0)
    lines.push(["Two-step verification", withoutFactor(factors.data)]);
  if (identities.data?.length === 0) lines.push(["Single sign-on", "Never used"]);
  const has = (name: string) => lines.every(([one]) => one !== name);
  return (
    <>
      {has("Sessions") && <Sessions user={user} list={sessions} />}
      {has("Two-step verification") && <Factors user={user} factors={factors} />}
      {has("Single sign-on") && !isOperator && <IdentitiesSection area="admin" user={user} />}
      {lines.length > 0 && (
        <Section title="Sign-in">
          <Facts facts={lines} />
        </Section>
      )}
    </>
  );
}

type OwnFactors = DataOf<typeof userFactorsOptions>;

const withoutFactor = ({ is_required: isRequired }: OwnFactors) =>
  isRequired
    ? "Not set up. The company requires it, so it is set up at the next sign-in."
    : "Not set up. The company does not require it.";

interface SessionsProps extends UserProps {
  readonly list: PagedList<RowOf<typeof userSessionsOptions>>;
}

/** Section with the sign-ins of a user, which an operator may end. */
function Sessions({ user, list }: SessionsProps) {
  const { endSession } = useUserActions();
  return (
    <Section
      title="Active sessions"
      description="Browsers and apps in which the user is signed in."
      actions={rowsOf(list).some((one) => !one.is_current) && <EndSessions user={user} />}
    >
      <List list={list} more="Show older">
        {(rows) => (
          <DataTable
            caption="Sessions"
            rows={rows}
            rowKey={({ id }) => id}
            end="Actions"
            columns={(one) => sessionColumns(one, ({ id }) => endSession(user.id, id))}
          />
        )}
      </List>
    </Section>
  );
}

function EndSessions({ user: { id, name, email } }: UserProps) {
  const { endSessions } = useUserActions();
  const { user: me } = useSession();
  const isOwn = id === me.id;
  return (
    <ConfirmedAction
      label={isOwn ? "End all others" : "End all sessions"}
      button={{ size: "xs" }}
      title={isOwn ? "End all other sessions?" : `End all sessions of ${name}?`}
      action={isOwn ? "End all others" : "End all sessions"}
      danger
      onConfirm={() => endSessions(id)}
      done={isOwn ? "Only this session is left." : `${name} is signed out everywhere.`}
    >
      {email} is signed out of every {isOwn ? "other " : ""}browser and app immediately and can sign
      in again. API keys keep working; to end those too, deactivate the user.
    </ConfirmedAction>
  );
}

interface FactorsProps extends UserProps {
  readonly factors: UseQueryResult<OwnFactors>;
}

/** Section with the second factors of a user, which an operator resets if the user has lost them. */
function Factors({ user, factors }: FactorsProps) {
  return (
    <Section
      title="Two-step verification"
      description={
        factors.data &&
        (factors.data.is_required ? "The company requires it." : "The company does not require it.")
      }
      actions={factors.data && <ResetFactors user={user} />}
    >
      <Loaded query={factors}>
        {(own) => (
          <Stack gap="xs">
            <DataTable
              caption="Second factors"
              rows={own.factors}
              rowKey={({ id }) => id}
              columns={factorColumns}
            />
            <Dimmed size="sm">{counted(own.recovery_codes_left, "unused recovery code")}</Dimmed>
          </Stack>
        )}
      </Loaded>
    </Section>
  );
}

function ResetFactors({ user: { id, name, email } }: UserProps) {
  const { resetFactors } = useUserActions();
  return (
    <ConfirmedAction
      label="Reset second factors"
      button={{ size: "xs" }}
      title={`Reset the second factors of ${name}?`}
      action="Reset second factors"
      danger
      onConfirm={() => resetFactors(id)}
      done={`Second factors of ${name} removed.`}
    >
      <Stack gap="sm">
        <Alert color="yellow" role="note" icon={<Icon name="alert" />}>
          First make sure that it is {name} who asks: whoever knows the password can sign in
          afterwards.
        </Alert>
        <Text size="sm">
          All passkeys, the authenticator app and the recovery codes of {email} are removed, and all
          sessions and tokens end. The user signs in with the password only, and sets up a new
          factor if the company requires one. We notify {name} by email.
        </Text>
      </Stack>
    </ConfirmedAction>
  );
}
