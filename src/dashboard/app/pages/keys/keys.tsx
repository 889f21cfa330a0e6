import { Stack } from "@mantine/core";

import { useSession } from "../../session/session.tsx";
import { PageHeader } from "../../ui/page-header.tsx";
import { ApiTokensSection } from "./api-tokens.tsx";
import { clientsPathOf } from "./client-model.ts";
import { OAuthClientsSection } from "./oauth-clients.tsx";
import { PersonalTokenSection } from "./personal-token.tsx";
import { TokenUses } from "./token-uses.tsx";

export function Page() {
  const { user, company } = useSession();
  const { role } = user;
  const clientsPath = clientsPathOf(role);
  return (
    <>
      <PageHeader
        title="API keys"
        description="What your own programs use to call the API as you. Keep them like passwords."
      />
      <Stack gap="lg">
        <PersonalTokenSection />
        <ApiTokensSection />
        {clientsPath !== undefined && <OAuthClientsSection path={clientsPath} />}
        {company.type === "partner" && <TokenUses />}
      </Stack>
    </>
  );
}
