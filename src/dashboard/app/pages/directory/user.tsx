import { Alert, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useParams } from "wouter";

import { isErased } from "../../api/erased.ts";
import { useCredentials } from "../../session/credentials.ts";
import { roleName } from "../../session/roles.ts";
import { useApi } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { CopyableId } from "../../ui/copy.tsx";
import { ActionButton, ConfirmedAction, DialogButton } from "../../ui/dialog.tsx";
import { idOf } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Facts, PageHeader, Section, TextLink } from "../../ui/layout.tsx";
import { NotFound, UnreadRecord } from "../../ui/states.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { RecentActivity } from "../audit/recent.tsx";
import { useInactivePartner } from "../companies/company-switches.tsx";
import { type Account, accountOptions } from "../companies/data.ts";
import { lastSignInOptions, type User, userOptions, useUserActions } from "../users/data.ts";
import { AccessSections } from "./user-access.tsx";
import { EditUser } from "../users/user-form.tsx";
import { userState, WhileLocked } from "../users/user-state.tsx";
import { UserSwitch } from "../users/user-switch.tsx";

const BACK = { href: "/users", title: "Users" };

/** Page of one user: what the user may do, how the user signs in, and what operators may change. */
export function Page() {
  const id = idOf(useParams()["id"]);
  const user = useQuery({ ...userOptions(useApi(), id), staleTime: 0 });
  if (id === undefined) return <NotFound back={BACK} />;
  if (user.data === undefined) return <UnreadRecord title="User" back={BACK} query={user} />;
  return isErased(user.data) ? <ErasedUser user={user.data} /> : <UserPage user={user.data} />;
}

interface UserProps {
  readonly user: User;
}

/** Page of an erased user. The user never changes again, so it has no actions. */
function ErasedUser({ user }: UserProps) {
  const { id, role, company } = user;
  return (
    <>
      <PageHeader
        title={`Erased user ${id}`}
        back={BACK}
        description={
          <Group gap="xs">
            <StateBadge state="erased" />
            <span>
              Was {roleName(role)} at <Company company={company} />
            </span>
          </Group>
        }
      />
      <Stack gap="lg">
        <Section
          title="Details"
          description="Name and email address were removed for good, and nobody can sign in with this user. The other records of this person follow: the page “Erasures” shows how far that is. To let the person in again, create a new user."
        >
          <Facts
            facts={[
              ["Erased", <ExactTime key="erased" at={user.updated_at} />],
              ["Created", <ExactTime key="created" at={user.created_at} />],
              ["ID", <CopyableId key="id" id={String(id)} label="Copy the user's id" />],
            ]}
          />
        </Section>
        <Activity user={user} />
      </Stack>
    </>
  );
}

function Activity({ user: { id } }: UserProps) {
  return <RecentActivity about="user" id={id} />;
}

function UserPage({ user }: UserProps) {
  const { id, name, email, role, company, is_active: isActive } = user;
  // Only an account has stores, which a location user is limited to.
  const account = useQuery(
    accountOptions(useApi(), company.type === "account" ? company.id : null),
  ).data;
  const inactive = useInactiveCompany(user, account);
  const { setActive, sendPasswordReset } = useUserActions();
  return (
    <>
      <PageHeader
        title={name}
        back={BACK}
        description={
          <Group gap="xs">
            <StateBadge state={inactive === undefined ? userState(user) : "inactive"} />
            <span>
              {roleName(role)} at <Company company={company} />
            </span>
          </Group>
        }
        actions={
          <>
            {isActive && inactive === undefined && user.has_password && (
              <ConfirmedAction
                label="Send password reset"
                title={`Send a password reset to ${name}?`}
                action="Send the email"
                onConfirm={() => sendPasswordReset(user.id)}
                done={`Password reset sent to ${email}.`}
              >
                We email {email} a link to choose a new password, valid for 10 minutes, in the name
                of support. The current password works until a new one is chosen, which ends all
                sessions and tokens.
              </ConfirmedAction>
            )}
            <DialogButton label="Edit" title={`Edit ${name}`} button={{ variant: "default" }}>
              {(close) => <EditUser user={user} company={account} onClose={close} />}
            </DialogButton>
          </>
        }
      />
      <Stack gap="lg">
        <Access user={user} inactive={inactive} />
        <Details user={user} stores={account?.stores ?? []} />
        <AccessSections user={user} />
        <Activity user={user} />
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

/** Returns the inactive company because of which a user cannot sign in: the user's own, or the partner of its account. */
function useInactiveCompany({ company }: User, account: Account | undefined) {
  const partnerId = company.type === "partner" ? company.id : (account?.partner_id ?? null);
  const partner = useInactivePartner(partnerId);
  return account?.is_active === false ? account : partner;
}

function Company({ company: { id, name, type } }: Pick<User, "company">) {
  return type === "platform" ? name : <TextLink href={`/companies/${id}`}>{name}</TextLink>;
}

interface AccessProps extends UserProps {
  readonly inactive: { readonly id: number; readonly name: string } | undefined;
}

/** Notices about a user who cannot sign in now, with what an operator can do about it. */
function Access({ user, inactive }: AccessProps) {
  const { unlock, invite } = useUserActions();
  const { id, name, email, is_active: isActive, locked_until: until } = user;
  const hasSso = useHasSso(user);
  return (
    <>
      {inactive !== undefined && (
        <Notice title={`${inactive.name} is inactive`}>
          Nobody of this company can sign in, and invitations do not work, until{" "}
          <TextLink href={`/companies/${inactive.id}`}>{inactive.name}</TextLink> is activated.
        </Notice>
      )}
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
      {isActive && inactive === undefined && !user.has_password && (
        <Notice
          title={user.is_invited ? "Invitation not accepted yet" : "No password set"}
          action={
            <ActionButton
              label="Invite again"
              fullLabel={`Invite again: ${name}`}
              onClick={() => invite(id)}
              done={`Invitation sent to ${email} again. The previous link no longer works.`}
            />
          }
        >
          {user.is_invited
            ? `${name} can sign in with the invitation that we emailed to ${email}${hasSso ? ", or by single sign-on" : ""}.`
            : `${name} signs in by single sign-on. Another invitation lets them set a password, too.`}
        </Notice>
      )}
    </>
  );
}

/** Returns whether the email domain of an invited user has single sign-on. */
function useHasSso({ email, is_invited: isInvited }: User) {
  const { discover } = useCredentials();
  const { data } = useQuery({
    queryKey: ["sign-in-methods", email.split("@").at(-1)],
    queryFn: () => discover(email),
    enabled: isInvited,
    staleTime: Infinity,
  });
  return data?.sso === true;
}

interface NoticeProps {
  readonly title: string;
  readonly action?: ReactNode;
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
    <Section title="Details">
      <Facts
        facts={[
          ["Email", user.email],
          ["Role", roleName(user.role)],
          [
            "Company",
            <span key="company">
              <Company company={user.company} /> (
              <TextLink href={`/users?company=${user.company_id}`}>all its users</TextLink>)
            </span>,
          ],
          ...(own.length > 0 ? ([["Stores", own.join(", ")]] as const) : []),
          ["Password", user.has_password ? "Set" : "Not set"],
          ["Last sign-in", <LastSignIn key="sign-in" user={user} />],
          ["Created", <ExactTime key="created" at={user.created_at} />],
          ["External ID", user.external_id ?? "None"],
          ["ID", <CopyableId key="id" id={String(user.id)} label="Copy the user ID" />],
        ]}
      />
    </Section>
  );
}

function LastSignIn({ user: { id } }: UserProps) {
  const { data: at } = useQuery(lastSignInOptions(useApi(), id));
  if (at === undefined) return "…";
  return at === null ? "None in the audit log" : <Time at={at} />;
}
