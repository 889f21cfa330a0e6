import { Button } from "@mantine/core";
import { useState, type ReactNode } from "react";

import { roleName, ROLES } from "../../session/identity.ts";
import { useApi } from "../../session/session.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from "../../ui/filters.tsx";
import { Highlighted } from "../../ui/badges.tsx";
import { textQuery } from "../../ui/text-query.ts";
import { Icon } from "../../ui/icon.tsx";
import { idOf } from "../../ui/format.ts";
import { TableList } from "../../ui/list.tsx";
import { CellText, Dimmed, PageHeader } from "../../ui/layout.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { ActiveFilter, activeQuery, CompanySelect } from "../companies/company-select.tsx";
import { type User, type UserFilter, usersOptions } from "./data.ts";
import { UserActions, UserState } from "./user-actions.tsx";
import { NewUser } from "./user-form.tsx";

const FILTERS = ["company", "role", "q", "active"] as const;
type Filters = ReturnType<typeof useFilters<(typeof FILTERS)[number]>>;

export function Page() {
  const [isCreating, setCreating] = useState(false);
  const stop = () => setCreating(false);
  const filters = useFilters(FILTERS);
  const q = filters.get("q");
  return (
    <>
      <PageHeader
        title="Users"
        description="Everybody who can sign in, at the platform, at partners and at accounts."
        actions={
          <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setCreating(true)}>
            New user
          </Button>
        }
      />
      <UserFilters filters={filters} />
      <TableList
        list={useList(usersOptions(useApi(), queryOf(filters.get)))}
        noun={["user", "users"]}
        empty={
          <EmptyState icon="users" title="No user matches">
            Nobody fits all of these filters at once. Clear them to see everybody.
          </EmptyState>
        }
        table={{
          caption: "Users, newest first",
          end: "Change",
          columns: (user) => columnsOf(user, q),
        }}
      />
      <Dialog opened={isCreating} onClose={stop} title="New user" size="lg">
        <NewUser onClose={stop} />
      </Dialog>
    </>
  );
}

function columnsOf(user: User, q: string | undefined): Readonly<Record<string, ReactNode>> {
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
    Change: <UserActions user={user} />,
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
