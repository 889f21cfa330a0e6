import { Button, Group, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useParams } from "wouter";

import { useApi } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { CopyableId } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { counted, idOf } from "../../ui/format.ts";
import { CellText, Dimmed, Facts, PageHeader, Section } from "../../ui/layout.tsx";
import { Loaded, NotFound } from "../../ui/states.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { RecentActivity } from "../audit/recent.tsx";
import { ActDialog } from "../partner/act-dialog.tsx";
import { type Account, allAccountsOptions } from "../partner/data.ts";

const BACK = { href: "/accounts", title: "Accounts" };

/** Page of one account of the partner. */
export function Page() {
  const id = idOf(useParams()["id"]);
  const accounts = useQuery(allAccountsOptions(useApi()));
  if (accounts.data === undefined)
    return (
      <>
        <PageHeader title="Account" back={BACK} />
        <Loaded query={accounts}>{() => null}</Loaded>
      </>
    );
  const account = accounts.data.find((one) => one.id === id);
  return account === undefined ? <NotFound /> : <AccountPage account={account} />;
}

interface AccountProps {
  readonly account: Account;
}

function AccountPage({ account }: AccountProps) {
  const { id, name, plan, is_active: isActive } = account;
  const [isActing, setActing] = useState(false);
  return (
    <>
      <PageHeader
        title={name}
        back={BACK}
        description={
          <>
            <Group gap="xs">
              <StateBadge state={isActive ? "active" : "inactive"} />
              <span>
                {plan.name} plan · {counted(account.stores.length, "store")}
              </span>
            </Group>
            {isActive && "Act as its owner to see and answer its reviews, for up to 24 hours."}
          </>
        }
        actions={isActive && <Button onClick={() => setActing(true)}>Act as owner</Button>}
      />
      <Stack gap="lg">
        <Stores account={account} />
        <RecentActivity about="company" id={id} />
        <Section title="Details">
          <Facts
            facts={[
              ["Created", <ExactTime key="created" at={account.created_at} />],
              ["External ID", account.external_id ?? "None"],
              ["ID", <CopyableId key="id" id={String(id)} label="Copy the account ID" />],
            ]}
          />
        </Section>
      </Stack>
      {isActing && <ActDialog account={account} onClose={() => setActing(false)} />}
    </>
  );
}

function Stores({ account: { stores } }: AccountProps) {
  return (
    <Section title="Stores" description="Events name the store of a review by this name and ID.">
      {stores.length === 0 ? (
        <Dimmed size="sm">No stores yet.</Dimmed>
      ) : (
        <DataTable
          caption="Stores"
          rows={stores}
          rowKey={(one) => one.id}
          columns={(one) => ({ Name: <CellText title={one.name} />, ID: one.id })}
        />
      )}
    </Section>
  );
}
