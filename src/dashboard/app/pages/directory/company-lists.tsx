import { Group, Stack } from "@mantine/core";

import { useApi } from "../../session/session.tsx";
import { DialogButton } from "../../ui/dialog.tsx";
import { counted, number } from "../../ui/format.ts";
import { CellText, Dimmed, PageLink, RowLink } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { NewAccount } from "../companies/company-forms.tsx";
import { CompanyState } from "../companies/company-switches.tsx";
import { type Account, accountsOptions } from "../companies/data.ts";
import { storesOptions } from "../stores/data.ts";
import { SitesState } from "../stores/sites-state.tsx";

/** Accounts of a partner, and a button for a new one. */
export function Accounts({ partnerId }: { readonly partnerId: number }) {
  return (
    <Stack>
      <Group justify="flex-end">
        <DialogButton label="New account">
          {(close) => <NewAccount partnerId={partnerId} onClose={close} />}
        </DialogButton>
      </Group>
      <TableList
        list={useList(accountsOptions(useApi(), { partner_id: partnerId }))}
        noun={["account", "accounts"]}
        empty={
          <EmptyState icon="building" title="No accounts yet">
            An account is a customer of this partner, with a plan and stores.
          </EmptyState>
        }
        table={{
          caption: "Accounts, newest first",
          columns: (one) => ({
            Name: <CellText title={<RowLink href={`/companies/${one.id}`}>{one.name}</RowLink>} />,
            Plan: one.plan.name,
            Stores: number(one.stores.length),
            State: <CompanyState company={one} />,
            Created: <Time at={one.created_at} />,
          }),
        }}
      />
    </Stack>
  );
}

/** Stores of an account. */
export function StoreList({ account: { id, stores } }: { readonly account: Account }) {
  const list = useList(storesOptions(useApi(), { account_id: id }));
  const manage = <PageLink href={`/stores?account=${id}`}>Manage stores</PageLink>;
  if (stores.length === 0)
    return (
      <EmptyState icon="building" title="No stores yet" action={manage}>
        Reviews belong to stores. Add the first one under Stores.
      </EmptyState>
    );
  return (
    <Stack>
      <Group justify="space-between">
        <Dimmed size="sm">{counted(stores.length, "store")}</Dimmed>
        {manage}
      </Group>
      <TableList
        list={list}
        table={{
          caption: "Stores",
          columns: (one) => ({
            Name: <CellText title={<RowLink href={`/stores/${one.id}`}>{one.name}</RowLink>} />,
            "Review sites": <SitesState sites={one.review_sites} />,
            ID: one.id,
          }),
        }}
      />
    </Stack>
  );
}
