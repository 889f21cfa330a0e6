import { Button, Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";

import { useApi } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { FilterBar, TextFilter, useFilters } from "../../ui/filters.tsx";
import { CellText, PageHeader } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { type Account, ownAccountsOptions, useActAsOwner } from "./accounts-data.ts";
import { ActiveFilter, activeQuery } from "../companies/company-select.tsx";
import { Stores } from "../companies/stores.tsx";

/** Page that lists the accounts of a partner. Accounts are the partner's customers. */
export function Page() {
  const { get, set, field, count, clear } = useFilters(["name", "active"]);
  const [acting, setActing] = useState<Account>();
  const name = get("name");
  return (
    <>
      <PageHeader
        title="Accounts"
        description="Your customers, whose stores are reviewed. The platform makes and ends them for you."
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
          <EmptyState
            icon="building"
            title={count > 0 ? "No account matches" : "There is no account yet"}
          >
            {count > 0
              ? "Names are found by any part of them. Clear the filters to see all."
              : "The platform makes accounts for you: ask its people for the first."}
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
    Name: <CellText title={one.name}>Number {one.id}</CellText>,
    Plan: one.plan.name,
    Stores: <Stores stores={one.stores} />,
    State: <StateBadge state={one.is_active ? "active" : "inactive"} />,
    Created: <Time at={one.created_at} />,
    Assist: one.is_active && (
      <Button
        size="xs"
        variant="default"
        onClick={() => onAct(one)}
        aria-label={`Act as owner of ${one.name}`}
      >
        Act as owner
      </Button>
    ),
  };
}

const REASON_CHARS = 500;

interface ActDialogProps {
  readonly account: Account;
  readonly onClose: () => void;
}

function ActDialog({ account: { id, name }, onClose }: ActDialogProps) {
  const actAsOwner = useActAsOwner();
  const [reason, setReason] = useState("");
  return (
    <Confirm
      opened
      onClose={onClose}
      title={`Act as the owner of ${name}?`}
      action="Act as owner"
      onConfirm={() => actAsOwner(id, reason.trim())}
    >
      <Text size="sm" mb="md">
        You see the reviews of {name} and answer them in its owner’s name, for a day at most.
        Passwords, keys and secrets stay out of reach. The audit log names you both.
      </Text>
      <TextInput
        label="Reason"
        description="For the audit log; it may stay empty."
        maxLength={REASON_CHARS}
        data-autofocus
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </Confirm>
  );
}
