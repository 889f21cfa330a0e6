import { Button } from "@mantine/core";
import { type ReactNode, useState } from "react";

import { useApi } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { number } from "../../ui/format.ts";
import { FilterBar, TextFilter, useFilters } from "../../ui/filters.tsx";
import { CellText, PageHeader, RowLink } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { ActDialog } from "./act-dialog.tsx";
import { type Account, ownAccountsOptions } from "./data.ts";
import { ActiveFilter, activeQuery } from "../companies/company-select.tsx";

/** Page that lists the accounts of a partner. Accounts are the partner's customers. */
export function Page() {
  const { get, set, field, count, clear } = useFilters(["name", "active"]);
  const [acting, setActing] = useState<Account>();
  const name = get("name");
  return (
    <>
      <PageHeader
        title="Accounts"
        description="Your customers. We create and close accounts for you. “Act as owner” opens an account as its owner sees it, for up to 24 hours; the audit log records it."
      />
      <FilterBar count={count} onClear={clear}>
        <TextFilter label="Name" value={name} onChange={(next) => set({ name: next })} />
        <ActiveFilter {...field("active")} />
      </FilterBar>
      <TableList
        list={useList(
          ownAccountsOptions(useApi(), { ...(name && { name }), ...activeQuery(get("active")) }),
        )}
        noun={["account", "accounts"]}
        empty={
          <EmptyState icon="building" title={count > 0 ? "No account matches" : "No accounts yet"}>
            {count > 0
              ? "Search matches any part of a name. Clear the filters to see all."
              : "We create accounts for you. Ask our support to add the first one."}
          </EmptyState>
        }
        table={{
          caption: "Accounts, newest first",
          end: "Assist",
          columns: (one) => columnsOf(one, setActing),
        }}
      />
      {acting && <ActDialog account={acting} onClose={() => setActing(undefined)} />}
    </>
  );
}

function columnsOf(
  one: Account,
  onAct: (account: Account) => void,
): Readonly<Record<string, ReactNode>> {
  return {
    Name: (
      <CellText title={<RowLink href={`/accounts/${one.id}`}>{one.name}</RowLink>}>
        ID {one.id}
      </CellText>
    ),
    Plan: one.plan.name,
    Stores: number(one.stores.length),
    State: <StateBadge state={one.is_active ? "active" : "inactive"} />,
    Created: <Time at={one.created_at} />,
    Assist: one.is_active && (
      <Button
        size="xs"
        variant="default"
        className="on-top"
        onClick={() => onAct(one)}
        aria-label={`Act as owner of ${one.name}`}
      >
        Act as owner
      </Button>
    ),
  };
}
