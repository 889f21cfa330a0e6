import { Anchor, Button, Text } from "@mantine/core";
import { Link } from "wouter";

import { useApi } from "../../session.tsx";
import { CursorPages, useCursorPages } from "../../ui/cursor-pages.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from "../../ui/filters.tsx";
import { StateBadge } from "../../ui/state-badge.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { counted } from "../../ui/words.ts";
import { CompanySelect } from "./company-select.tsx";
import { CompanySwitch } from "./company-switch.tsx";
import { idOf } from "../../ui/ids.ts";

const ACTIVE = [
  ["true", "Active"],
  ["false", "Inactive"],
] as const;

/** The filters of the address that both lists have, as the API's query. */
function queryOf(get: (name: "name" | "active") => string | undefined) {
  const name = get("name");
  const isActive = (["true", "false"] as const).find((one) => one === get("active"));
  return { ...(name && { name }), ...(isActive && { is_active: isActive }) };
}

export function PartnerList({ onCreate }: { readonly onCreate: () => void }) {
  const api = useApi();
  const { get, set, count, clear } = useFilters(["name", "active"]);
  const query = queryOf(get);
  const partners = useCursorPages(["partners", query], (cursor) =>
    api.call("GET", "/admin/partners", { query: { ...query, ...(cursor && { cursor }) } }),
  );
  return (
    <>
      <FilterBar count={count} onClear={clear}>
        <TextFilter label="Name" value={get("name")} onChange={(name) => set({ name })} />
        <ChoiceFilter
          label="State"
          any="Active or inactive"
          choices={ACTIVE}
          value={get("active")}
          onChange={(active) => set({ active })}
        />
      </FilterBar>
      <CursorPages
        query={partners}
        noun={["partner", "partners"]}
        empty={<NoCompany isFiltered={count > 0} noun="partner" onCreate={onCreate} />}
      >
        {(rows) => (
          <DataTable
            caption="Partners, newest first"
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
                    Number {one.id}
                  </Text>
                </>
              ),
              "White label": one.white_label.enabled
                ? `${one.white_label.brand_name} at ${one.white_label.domain}`
                : "None",
              State: <StateBadge state={one.is_active ? "active" : "inactive"} />,
              Created: <Time at={one.created_at} />,
              Accounts: (
                <Anchor
                  component={Link}
                  href={`/companies?tab=accounts&partner=${one.id}`}
                  size="sm"
                >
                  Show accounts
                </Anchor>
              ),
              Change: <CompanySwitch type="partner" company={one} />,
            })}
          </DataTable>
        )}
      </CursorPages>
    </>
  );
}

export function AccountList({ onCreate }: { readonly onCreate: () => void }) {
  const api = useApi();
  const { get, set, count, clear } = useFilters(["name", "active", "partner"]);
  const partnerId = idOf(get("partner"));
  const query = { ...queryOf(get), ...(partnerId !== undefined && { partner_id: partnerId }) };
  const accounts = useCursorPages(["accounts", query], (cursor) =>
    api.call("GET", "/admin/accounts", { query: { ...query, ...(cursor && { cursor }) } }),
  );
  return (
    <>
      <FilterBar count={count} onClear={clear}>
        <TextFilter label="Name" value={get("name")} onChange={(name) => set({ name })} />
        <CompanySelect
          label="Partner"
          types={["partner"]}
          placeholder="Every partner"
          value={partnerId}
          onChange={(partner) => set({ partner: partner && String(partner.id) })}
        />
        <ChoiceFilter
          label="State"
          any="Active or inactive"
          choices={ACTIVE}
          value={get("active")}
          onChange={(active) => set({ active })}
        />
      </FilterBar>
      <CursorPages
        query={accounts}
        noun={["account", "accounts"]}
        empty={<NoCompany isFiltered={count > 0} noun="account" onCreate={onCreate} />}
      >
        {(rows) => (
          <DataTable
            caption="Accounts, newest first"
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
                    Number {one.id}
                  </Text>
                </>
              ),
              Partner: one.partner_name ?? "None",
              Plan: one.plan.name,
              Stores: <Stores stores={one.stores} />,
              State: <StateBadge state={one.is_active ? "active" : "inactive"} />,
              Created: <Time at={one.created_at} />,
              Change: <CompanySwitch type="account" company={one} />,
            })}
          </DataTable>
        )}
      </CursorPages>
    </>
  );
}

function Stores({ stores }: { readonly stores: readonly { readonly id: number; name: string }[] }) {
  if (stores.length === 0) return "None";
  return (
    <details>
      <summary>{counted(stores.length, "store")}</summary>
      <Text size="sm" component="ul" className="plain-list">
        {stores.map(({ id, name }) => (
          <li key={id}>
            {name} ({id})
          </li>
        ))}
      </Text>
    </details>
  );
}

interface NoCompanyProps {
  readonly isFiltered: boolean;
  readonly noun: "partner" | "account";
  readonly onCreate: () => void;
}

function NoCompany({ isFiltered, noun, onCreate }: NoCompanyProps) {
  if (isFiltered)
    return (
      <EmptyState icon="search" title={`No ${noun} matches`}>
        Names are found by any part of them. Clear the filters to see all.
      </EmptyState>
    );
  return (
    <EmptyState
      icon="building"
      title={`There is no ${noun} yet`}
      action={<Button onClick={onCreate}>New {noun}</Button>}
    >
      {noun === "partner"
        ? "A partner comes first: accounts and webhooks belong to one."
        : "An account belongs to a partner, has a plan, and stores that are reviewed."}
    </EmptyState>
  );
}
