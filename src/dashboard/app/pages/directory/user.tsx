import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, useParams } from "wouter";

import { roleName } from "../../session/roles.ts";
import { useApi } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { CopyableId } from "../../ui/copy.tsx";
import { ActionButton, DialogButton } from "../../ui/dialog.tsx";
import { idOf } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Facts, PageHeader, Section, TextLink } from "../../ui/layout.tsx";
import { Loaded, NotFound } from "../../ui/states.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { RecentActivity } from "../audit/recent.tsx";
import { accountOptions } from "../companies/data.ts";
import { type User, userOptions, useUserActions } from "../users/data.ts";
import { IdentitiesSection } from "../users/identities.tsx";
import { FactorsSection, SessionsSection } from "./user-access.tsx";
import { EditUser } from "../users/user-form.tsx";
import { WhileLocked } from "../users/user-state.tsx";
import { UserSwitch } from "../users/user-switch.tsx";

const BACK = { href: "/users", title: "Users" };

/** Page of one user: what the user may do, how the user signs in, and what operators may change. */
export function Page() {
  const id = idOf(useParams()["id"]);
  const user = useQuery({ ...userOptions(useApi(), id), staleTime: 0 });
  if (id === undefined) return <NotFound />;
  if (user.data === undefined)
    return (
      <>
        <PageHeader title="User" back={BACK} />
        <Loaded query={user}>{() => null}</Loaded>
      </>
    );
  return <UserPage user={user.data} />;
}

interface UserProps {
  readonly user: User;
}

function UserPage({ user }: UserProps) {
  const { id, name, role, company, is_active: isActive } = user;
  // Only an account has stores, which a location user is limited to.
  const account = useQuery(
    accountOptions(useApi(), company.type === "account" ? company.id : null),
  );
  const { setActive } = useUserActions();
  return (
    <>
      <PageHeader
        title={name}
        back={BACK}
        description={
          <Group gap="xs">
            <StateBadge state={isActive ? "active" : "inactive"} />
            <span>
              {roleName(role)} at <Company company={company} />
            </span>
          </Group>
        }
        actions={
          <DialogButton label="Edit" title={`Edit ${name}`} button={{ variant: "default" }}>
            {(close) => <EditUser user={user} company={account.data} onClose={close} />}
          </DialogButton>
        }
      />
      <Stack gap="lg">
        <Access user={user} />
        <Details user={user} stores={account.data?.stores ?? []} />
        <FactorsSection user={user} />
        {company.type !== "platform" && <IdentitiesSection area="admin" user={user} />}
        <SessionsSection user={user} />
        <RecentActivity about="user" id={id} />
        <Section
          title={isActive ? "Deactivate" : "Activate"}
          description={
            <>
              {isActive
                ? "Signs the user out everywhere and revokes all tokens. Responses and notes stay. "
                : "The user can sign in again. Previous tokens stay revoked. "}
              To remove name and address for good,{" "}
              <TextLink href={`/erasures?user=${id}`}>erase this person</TextLink>.
            </>
          }
          actions={<UserSwitch user={user} onSwitch={(next) => setActive(id, next)} />}
        />
      </Stack>
    </>
  );
}

function Company({ company: { id, name, type } }: Pick<User, "company">) {
  return type === "platform" ? name : <TextLink href={`/companies/${id}`}>{name}</TextLink>;
}

/** Notices about a user who cannot sign in now, with what an operator can do about it. */
function Access({ user }: UserProps) {
  const { unlock, invite } = useUserActions();
  const { id, name, email, is_active: isActive, locked_until: until } = user;
  return (
    <>
      <WhileLocked until={until}>
        <Notice
          title="Locked after wrong passwords"
          action={
            <ActionButton
              label="Unlock"
              fullLabel={`Unlock ${name}`}
              onClick={() => unlock(id)}
              done={`${name} can sign in again.`}
            />
          }
        >
          The password is refused until <ExactTime at={until} />. Open sessions keep working.
        </Notice>
      </WhileLocked>
      {isActive && !user.has_password && (
        <Notice
          title="No password set"
          action={
            <ActionButton
              label="Invite again"
              fullLabel={`Invite again: ${name}`}
              onClick={() => invite(id)}
              done={`${email} is invited again. The previous link no longer works.`}
            />
          }
        >
          {name} can sign in with the invitation that we emailed, or by single sign-on.
        </Notice>
      )}
    </>
  );
}

interface NoticeProps {
  readonly title: string;
  readonly action: ReactNode;
  readonly children: ReactNode;
}

function Notice({ title, action, children }: NoticeProps) {
  return (
    <Alert color="yellow" role="note" icon={<Icon name="lock" />} title={title}>
      <Group justify="space-between" gap="sm">
        <Text size="sm" className="grows">
          {children}
        </Text>
        {action}
      </Group>
    </Alert>
  );
}

interface DetailsProps extends UserProps {
  readonly stores: readonly { readonly id: number; readonly name: string }[];
}

function Details({ user, stores }: DetailsProps) {
  const names = new Map(stores.map((one) => [one.id, one.name]));
  const own = user.store_ids.map((id) => names.get(id) ?? `Store ${id}`);
  return (
    <Section
      title="Details"
      actions={
        <Button
          component={Link}
          href={`/users?company=${user.company_id}`}
          variant="subtle"
          size="xs"
        >
          Colleagues
        </Button>
      }
    >
      <Facts
        facts={[
          ["Email", user.email],
          ["Role", roleName(user.role)],
          ["Company", <Company key="company" company={user.company} />],
          ...(own.length > 0 ? ([["Stores", own.join(", ")]] as const) : []),
          ["Password", user.has_password ? "Set" : "Not set"],
          ["Created", <ExactTime key="created" at={user.created_at} />],
          ["External ID", user.external_id ?? "None"],
          ["ID", <CopyableId key="id" id={String(user.id)} label="Copy the user's id" />],
        ]}
      />
    </Section>
  );
}
