import { Alert, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import type { DataOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { counted } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Dimmed, Section } from "../../ui/layout.tsx";
import { List } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { Loaded } from "../../ui/states.tsx";
import { factorColumns } from "../security/second-factors.tsx";
import { sessionColumns } from "../security/sessions.tsx";
import {
  type User,
  userFactorsOptions,
  userSessionsOptions,
  useUserActions,
} from "../users/data.ts";

interface UserProps {
  readonly user: User;
}

/** Section with the second factors of a user, which an operator resets if the user has lost them. */
export function FactorsSection({ user }: UserProps) {
  const factors = useQuery(userFactorsOptions(useApi(), user.id));
  const hasAny = factors.data !== undefined && factors.data.factors.length > 0;
  return (
    <Section
      title="Two-step verification"
      description={
        factors.data?.is_required === true
          ? "The company requires a second factor. Without one, the user sets one up at the next sign-in."
          : "The company does not require a second factor."
      }
      actions={hasAny && <ResetFactors user={user} />}
    >
      <Loaded query={factors}>{(own) => <Factors own={own} />}</Loaded>
    </Section>
  );
}

function Factors({ own }: { readonly own: DataOf<typeof userFactorsOptions> }) {
  if (own.factors.length === 0) return <Dimmed size="sm">No second factor set up.</Dimmed>;
  return (
    <Stack gap="xs">
      <DataTable
        caption="Second factors"
        rows={own.factors}
        rowKey={({ id }) => id}
        columns={factorColumns}
      />
      <Dimmed size="sm">{counted(own.recovery_codes_left, "unused recovery code")}</Dimmed>
    </Stack>
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
      done={`The second factors of ${name} are removed.`}
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

/** Section with the sign-ins of a user, which an operator may end. */
export function SessionsSection({ user }: UserProps) {
  const { endSession } = useUserActions();
  const sessions = useList(userSessionsOptions(useApi(), user.id));
  return (
    <Section
      title="Active sessions"
      description="Browsers and apps in which the user is signed in."
    >
      <List
        list={sessions}
        more="Show older"
        empty={<Dimmed size="sm">The user is not signed in anywhere.</Dimmed>}
      >
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
