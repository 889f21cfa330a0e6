import { Button, Text } from "@mantine/core";
import { useState } from "react";

import { useApi, type Role } from "../../session.tsx";
import { CursorPages, useCursorPages } from "../../ui/cursor-pages.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from "../../ui/filters.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageHeader } from "../../ui/page-header.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { roleName, sentence } from "../../ui/words.ts";
import { CompanySelect } from "./company-select.tsx";
import { idOf } from "../../ui/ids.ts";
import { ROLES } from "./roles.ts";
import { UserActions, UserState } from "./user-actions.tsx";
import { UserForm } from "./user-form.tsx";

const FILTERS = ["company", "role", "email", "active"] as const;

export function Page() {
  const api = useApi();
  const [isCreating, setCreating] = useState(false);
  const filters = useFilters(FILTERS);
  const query = queryOf(filters.get);
  const users = useCursorPages(["users", query], (cursor) =>
    api.call("GET", "/admin/users", { query: { ...query, ...(cursor && { cursor }) } }),
  );
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
      <CursorPages
        query={users}
        noun={["user", "users"]}
        empty={
          <EmptyState icon="users" title="No user matches">
            Emails are found as a whole, not by parts. Clear the filters to see everybody.
          </EmptyState>
        }
      >
        {(rows) => (
          <DataTable
            caption="Users, newest first"
            rows={rows}
            rowKey={(one) => one.id}
            end="Change"
          >
            {(one) => ({
              Name: (
                <>
                  <Text fw={600} size="sm">
                    {one.name}
                  </Text>
                  <Text size="xs" c="dimmed">
                    {one.email}
                  </Text>
                </>
              ),
              Role: roleName(one.role),
              Company: (
                <>
                  {one.company.name}
                  <Text size="xs" c="dimmed">
                    {sentence(one.company.type)}
                    {one.store_ids.length > 0 && `, store no. ${one.store_ids.join(", ")}`}
                  </Text>
                </>
              ),
              State: <UserState user={one} />,
              Created: <Time at={one.created_at} />,
              Change: <UserActions user={one} />,
            })}
          </DataTable>
        )}
      </CursorPages>
      <UserForm opened={isCreating} onClose={() => setCreating(false)} />
    </>
  );
}

type Filters = ReturnType<typeof useFilters<(typeof FILTERS)[number]>>;
const MAX_EMAIL = 254;

function queryOf(get: Filters["get"]) {
  const companyId = idOf(get("company"));
  const role = ROLES.find((one) => one === get("role"));
  const email = get("email");
  const isActive = (["true", "false"] as const).find((one) => one === get("active"));
  return {
    ...(companyId !== undefined && { company_id: companyId }),
    ...(role !== undefined && { role }),
    ...(email !== undefined && email.length <= MAX_EMAIL && { email }),
    ...(isActive !== undefined && { is_active: isActive }),
  } satisfies { role?: Role; [name: string]: unknown };
}

function UserFilters({ filters: { get, set, count, clear } }: { readonly filters: Filters }) {
  return (
    <FilterBar count={count} onClear={clear}>
      <TextFilter
        label="Email"
        placeholder="The whole address"
        value={get("email")}
        onChange={(email) => set({ email })}
      />
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
        value={get("role")}
        onChange={(role) => set({ role })}
      />
      <ChoiceFilter
        label="State"
        any="Active or inactive"
        choices={[
          ["true", "Active"],
          ["false", "Inactive"],
        ]}
        value={get("active")}
        onChange={(active) => set({ active })}
      />
    </FilterBar>
  );
}
