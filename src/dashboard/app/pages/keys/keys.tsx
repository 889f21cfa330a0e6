import { Stack } from "@mantine/core";

import { useSession } from "../../session.tsx";
import { PageHeader } from "../../ui/page-header.tsx";
import { ApiTokens } from "./api-tokens.tsx";
import { clientsPathOf } from "./client-model.ts";
import { DashboardToken } from "./dashboard-token.tsx";
import { OAuthClients } from "./oauth-clients.tsx";

export function Page() {
  const { role } = useSession().user;
  const clientsPath = clientsPathOf(role);
  return (
    <>
      <PageHeader
        title="API keys"
        description="What your own programs use to call the API as you. Keep them like passwords."
      />
      <Stack gap="lg">
        <DashboardToken />
        <ApiTokens />
        {clientsPath !== undefined && <OAuthClients path={clientsPath} />}
      </Stack>
    </>
  );
}
