import { Tabs } from "@mantine/core";

import { useFilters } from "../../ui/filters.tsx";
import { PageHeader } from "../../ui/layout.tsx";
import { Providers } from "./providers.tsx";
import { SsoConnections } from "./sso-connections.tsx";

export function Page() {
  const { get, set } = useFilters(["tab", "company"]);
  return (
    <>
      <PageHeader
        title="Connections"
        description="Who may report reviews to the platform, and which identity providers sign people in."
      />
      <Tabs
        value={get("tab") === "sso" ? "sso" : "providers"}
        keepMounted={false}
        onChange={(tab) => set({ tab: tab === "sso" ? tab : undefined, company: undefined })}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="providers">Providers</Tabs.Tab>
          <Tabs.Tab value="sso">Single sign-on</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="providers">
          <Providers />
        </Tabs.Panel>
        <Tabs.Panel value="sso">
          <SsoConnections />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
