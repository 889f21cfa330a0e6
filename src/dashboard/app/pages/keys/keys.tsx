import { Stack, Text } from "@mantine/core";

import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { counted } from "../../ui/format.ts";
import { CellText, PageHeader, Section } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { listOptions, type RowOf, useList } from "../../ui/pages.ts";
import { LastUsed, Time } from "../../ui/time.tsx";
import { ApiTokensSection } from "./api-tokens.tsx";
import { clientsPathOf } from "./client-model.ts";
import { OAuthClientsSection } from "./oauth-clients.tsx";
import { PersonalTokenSection } from "./personal-token.tsx";

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

const teamTokensOptions = (api: ApiClient) =>
  listOptions(["team-tokens"], (cursor) =>
    answerOf(api.partner.tokens.get({ query: pageAt(cursor) })),
  );

const KINDS: Readonly<Record<string, string>> = {
  dashboard_pat: "Personal access token of these pages",
  api_pat: "Personal access token of the API",
  impersonation: "Acts as the owner of an account",
};

/**
 * Lists the tokens of a partner's users (API tokens, personal tokens, impersonations) with the time of their
 * last use. Tokens of sign-in sessions are not listed.
 */
function TokenUses() {
  return (
    <Section
      title="Tokens in use"
      description="Of everybody in your team, apart from sign-ins: where each was used, to the minute. An address that nobody knows is a reason for the holder to end the token."
    >
      <TableList
        list={useList(teamTokensOptions(useApi()))}
        noun={["token", "tokens"]}
        empty={
          <Text size="sm" c="dimmed">
            Nobody in your team has a token besides the sign-in.
          </Text>
        }
        table={{
          caption: "Tokens of the team, newest first",
          columns: (one) => ({
            Token: (
              <CellText title={one.name ?? KINDS[one.kind] ?? one.kind}>
                {one.user_name}
                {one.name !== null && `, ${KINDS[one.kind] ?? one.kind}`}
              </CellText>
            ),
            Used: <LastUsed at={one.last_used_at} />,
            Where: <Uses token={one} />,
          }),
        }}
      />
    </Section>
  );
}

function Uses({ token: { uses } }: { readonly token: RowOf<typeof teamTokensOptions> }) {
  const [newest] = uses;
  if (newest === undefined) return "Nowhere yet";
  const addresses = new Set(uses.map(({ ip }) => ip)).size;
  return (
    <details>
      <summary>
        {newest.ip}
        {addresses > 1 && ` and ${counted(addresses - 1, "other")}`}
      </summary>
      <Text size="sm" component="ul" className="plain-list">
        {uses.map((use) => (
          <li key={`${use.route} ${use.ip}`}>
            <code>{use.route}</code> from {use.ip}, <Time at={use.last_used_at} />
          </li>
        ))}
      </Text>
    </details>
  );
}
