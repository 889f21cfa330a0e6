import { Button, Group, Menu } from "@mantine/core";
import type { ReactNode } from "react";

import { roleName, ROLES } from "../../session/identity.ts";
import { useApi } from "../../session/session.tsx";
import { Highlighted, StateBadge } from "../../ui/badges.tsx";
import {
  ActionButton,
  Confirm,
  DialogButton,
  type RowDialogProps,
  useRowDialog,
} from "../../ui/dialog.tsx";
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from "../../ui/filters.tsx";
import { idOf } from "../../ui/format.ts";
import { CellText, Dimmed, PageHeader } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { textQuery } from "../../ui/text-query.ts";
import { useNow } from "../../ui/time.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { ActiveFilter, activeQuery, CompanySelect } from "../companies/company-select.tsx";
import { Identities } from "./identities.tsx";
import { UserSwitch } from "./user-switch.tsx";
import { type User, type UserFilter, usersOptions, useUserActions } from "./data.ts";
import { NewUser } from "./user-form.tsx";

const FILTERS = ["company", "role", "q", "active"] as const;
type Filters = ReturnType<typeof useFilters<(typeof FILTERS)[number]>>;

export function Page() {
  const reset = useRowDialog<User>();
  const identities = useRowDialog<User>();
  const filters = useFilters(FILTERS);
  const q = filters.get("q");
  return (
    <>
      <PageHeader
        title="Users"
        description="Everyone who can sign in: operators, partners and accounts."
        actions={
          <DialogButton label="New user">{(stop) => <NewUser onClose={stop} />}</DialogButton>
        }
      />
      <UserFilters filters={filters} />
      <TableList
        list={useList(usersOptions(useApi(), queryOf(filters.get)))}
        noun={["user", "users"]}
        empty={
          <EmptyState icon="users" title="No user matches">
            No user matches all filters. Clear them to see all users.
          </EmptyState>
        }
        table={{
          caption: "Users, newest first",
          end: "Change",
          columns: (user) =>
            columnsOf(user, q, { onReset: reset.show, onIdentities: identities.show }),
        }}
      />
      <ResetFactors {...reset.dialog} />
      <Identities area="admin" {...identities.dialog} />
    </>
  );
}

function columnsOf(
  user: User,
  q: string | undefined,
  actions: RowActions,
): Readonly<Record<string, ReactNode>> {
  const { company, store_ids: storeIds } = user;
  return {
    Name: (
      <CellText title={<Highlighted text={user.name} q={q} />}>
        <Highlighted text={user.email} q={q} />
      </CellText>
    ),
    Role: (
      <>
        <span className="one-line">{roleName(user.role)}</span>
        <Dimmed>
          {company.name}
          {storeIds.length > 0 && `, store no. ${storeIds.join(", ")}`}
        </Dimmed>
      </>
    ),
    State: <UserState user={user} />,
    Created: <Time at={user.created_at} />,
    Change: <UserActions user={user} {...actions} />,
  };
}

/**
 * Converts the filters in the address to query parameters of the users API. Values that the API would reject
 * are left out.
 */
function queryOf(get: Filters["get"]): UserFilter {
  const companyId = idOf(get("company"));
  const role = ROLES.find((one) => one === get("role"));
  return {
    ...(companyId !== undefined && { company_id: companyId }),
    ...(role !== undefined && { role }),
    ...textQuery(get("q")),
    ...activeQuery(get("active")),
  };
}

function UserFilters({
  filters: { get, set, field, count, clear },
}: {
  readonly filters: Filters;
}) {
  return (
    <FilterBar
      count={count}
      inView={get("q") === undefined ? 0 : 1}
      onClear={clear}
      search={
        <TextFilter label="Name or email" placeholder="Search names and emails" {...field("q")} />
      }
    >
      <CompanySelect
        label="Company"
        types={["platform", "partner", "account"]}
        placeholder="Every company"
        value={idOf(get("company"))}
        onChange={(company) => set({ company: company && String(company.id) })}
      />
      <ChoiceFilter
        label="Role"
        any="Every role"
        choices={ROLES.map((one) => [one, roleName(one)])}
        {...field("role")}
      />
      <ActiveFilter {...field("active")} />
    </FilterBar>
  );
}

const TICK_MS = 1_000;

interface UserProps {
  readonly user: User;
}

interface WhileLockedProps {
  readonly until: string;
  readonly children: ReactNode;
}

/** Renders its children until the sign-in lock of the user expires. */
function WhileLocked({ until, children }: WhileLockedProps) {
  const now = useNow(TICK_MS);
  return Date.parse(until) > now && children;
}

function UserState({ user }: UserProps) {
  const { locked_until: until } = user;
  return (
    <>
      <Group gap={6}>
        <StateBadge state={user.is_active ? "active" : "inactive"} />
        {until !== null && (
          <WhileLocked until={until}>
            <StateBadge state="locked" />
            <Dimmed>
              until <ExactTime at={until} />
            </Dimmed>
          </WhileLocked>
        )}
      </Group>
      {!user.has_password && <Dimmed>No password</Dimmed>}
    </>
  );
}

interface RowActions {
  readonly onReset: (user: User) => void;
  readonly onIdentities: (user: User) => void;
}

function UserActions({ user, onReset, onIdentities }: UserProps & RowActions) {
  const { unlock, setActive } = useUserActions();
  return (
    <Group gap="xs" justify="flex-end" wrap="nowrap" className="row-actions">
      {user.locked_until !== null && (
        <WhileLocked until={user.locked_until}>
          <ActionButton
            label="Unlock"
            fullLabel={`Unlock ${user.name}`}
            onClick={() => unlock(user.id)}
            done={`${user.name} can sign in again.`}
          />
        </WhileLocked>
      )}
      <Menu position="bottom-end">
        <Menu.Target>
          <Button
            size="xs"
            variant="subtle"
            color="gray"
            aria-label={`More actions for ${user.name}`}
          >
            More
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {user.company.type !== "platform" && (
            <Menu.Item onClick={() => onIdentities(user)}>Single sign-on</Menu.Item>
          )}
          <Menu.Item onClick={() => onReset(user)}>Reset second factors</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <UserSwitch
        user={user}
        onSwitch={(next) => setActive(user.id, next)}
        button={{ variant: "subtle", color: "gray" }}
      />
    </Group>
  );
}

/** Dialog that resets the second factors of a user. */
function ResetFactors({ row: user, ...dialog }: RowDialogProps<User>) {
  const { resetFactors } = useUserActions();
  const { id = 0, name = "", email = "" } = user ?? {};
  return (
    <Confirm
      {...dialog}
      title={`Reset the second factors of ${name}?`}
      action="Reset second factors"
      danger
      onConfirm={() => resetFactors(id)}
      done={`The second factors of ${name} are removed.`}
    >
      All passkeys, the authenticator app and the recovery codes of {email} are removed, and all
      sessions and tokens of the user end immediately. The user then signs in with the password
      only, and sets up a new factor if the company requires one. We notify {name} by email. Verify
      the identity of the person who asked for this.
    </Confirm>
  );
}
