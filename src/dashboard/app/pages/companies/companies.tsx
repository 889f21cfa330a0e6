import { Button, Tabs } from "@mantine/core";
import { useState } from "react";

import { Dialog } from "../../ui/dialog.tsx";
import { useFilters } from "../../ui/filters.tsx";
import { Icon } from "../../ui/icon.tsx";
import { PageHeader } from "../../ui/layout.tsx";
import { NewAccount, NewPartner } from "./company-forms.tsx";
import { AccountList, PartnerList } from "./company-lists.tsx";

export function Page() {
  const { get, set } = useFilters(["tab", "name", "active", "partner"]);
  const tab = get("tab") === "accounts" ? "accounts" : "partners";
  const [creating, setCreating] = useState<"partners" | "accounts">();
  const stop = () => setCreating(undefined);
  return (
    <>
      <PageHeader
        title="Companies"
        description="Partners resell the platform under their own name; each has accounts, the businesses whose stores are reviewed."
        actions={
          <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setCreating(tab)}>
            {tab === "accounts" ? "New account" : "New partner"}
          </Button>
        }
      />
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(next) =>
          set({
            tab: next === "accounts" ? next : undefined,
            name: undefined,
            active: undefined,
            partner: undefined,
          })
        }
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="partners">Partners</Tabs.Tab>
          <Tabs.Tab value="accounts">Accounts</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="partners">
          <PartnerList onCreate={() => setCreating("partners")} />
        </Tabs.Panel>
        <Tabs.Panel value="accounts">
          <AccountList onCreate={() => setCreating("accounts")} />
        </Tabs.Panel>
      </Tabs>
      <Dialog opened={creating === "partners"} onClose={stop} title="New partner" size="lg">
        <NewPartner onClose={stop} />
      </Dialog>
      <Dialog opened={creating === "accounts"} onClose={stop} title="New account" size="lg">
        <NewAccount onClose={stop} />
      </Dialog>
    </>
  );
}
