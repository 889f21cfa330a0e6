import type { ReactNode } from "react";

import { roleName, ROLES } from "../../session/roles.ts";
import { useApi } from "../../session/session.tsx";
import { Highlighted } from "../../ui/badges.tsx";
import { DialogButton } from "../../ui/dialog.tsx";
import {
  ChoiceFilter,
  FilterBar,
  TextFilter,
  useFilters,
  useOpenedByLink,
} from "../../ui/filters.tsx";
import { counted, idOf } from "../../ui/format.ts";
import { CellText, Dimmed, PageHeader, RowLink, useIsNarrow } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { textQuery } from "../../ui/text-query.ts";
import { Time } from "../../ui/time.tsx";
import { ActiveFilter, activeQuery, CompanySelect } from "../companies/company-select.tsx";
import { type User, type UserFilter, usersOptions } from "./data.ts";
import { NewUser } from "./user-form.tsx";
import { UserState } from "./user-state.tsx";

const FILTERS = ["company", "role", "q", "active"] as const;
type Filters = ReturnType<typeof useFilters<(typeof FILTERS)[number]>>;

export function Page() {
  const filters = useFilters(FILTERS);
  const q = filters.get("q");
  const isNarrow = useIsNarrow("md");
  return (
    <>
      <PageHeader
        title="Users"
        description="Everyone who can sign in: operators, partners and accounts."
        actions={
          <DialogButton label="New user" {...useOpenedByLink()}>
            {(stop) => <NewUser onClose={stop} />}
          </DialogButton>
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
          heights: [62, 104],
          columns: (user) => (isNarrow ? cardOf(user, q) : userColumns(user, q)),
        }}
      />
    </>
  );
}

function userColumns(user: User, q: string | undefined): Readonly<Record<string, ReactNode>> {
  const { company, store_ids: storeIds } = user;
  return {
    Name: (
      <CellText
        title={
          <RowLink href={`/users/${user.id}`}>
            <Highlighted text={user.name} q={q} />
          </RowLink>
        }
      >
        <Highlighted text={user.email} q={q} />
      </CellText>
    ),
    Role: (
      <>
        <span className="one-line">{roleName(user.role)}</span>
        {storeIds.length > 0 && <Dimmed>{counted(storeIds.length, "store")}</Dimmed>}
      </>
    ),
    Company: company.name,
    State: <UserState user={user} />,
    Created: <Time at={user.created_at} />,
  };
}

/** Returns the content of a card, which is short, because a phone shows hundreds of users as cards. */
function cardOf(user: User, q: string | undefined): Readonly<Record<string, ReactNode>> {
  const { Name, State } = userColumns(user, q);
  return { Name, Role: `${roleName(user.role)} at ${user.company.name}`, State };
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
