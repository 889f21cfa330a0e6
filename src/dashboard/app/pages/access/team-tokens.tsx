import { Text } from "@mantine/core";

import { useApi, useSession } from "../../session/session.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { counted } from "../../ui/format.ts";
import { CellText, Section, Dimmed } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { LastUsed, Time } from "../../ui/time.tsx";
import { type TeamToken, teamTokensOptions, useAccessActions } from "./data.ts";

const KINDS: Readonly<Record<string, string>> = {
  dashboard_pat: "Personal access token of these pages",
  api_pat: "Personal access token of the API",
  impersonation: "Acts as the owner of an account",
};

const nameOf = ({ name, kind }: TeamToken) => name ?? KINDS[kind] ?? kind;

interface TeamTokensProps {
  /** True if the user may end everybody's tokens, and not only their own. */
  readonly isOwner: boolean;
}

/**
 * Lists the tokens of a company's users (API tokens, personal access tokens, impersonations) with the time of their
 * last use. Tokens of sign-in sessions are not listed.
 */
export function TeamTokens({ isOwner }: TeamTokensProps) {
  const { user: me, company } = useSession();
  return (
    <Section
      title="Tokens in use"
      description="Revoke any token used from an IP address that you don’t recognize."
    >
      <TableList
        list={useList(teamTokensOptions(useApi(), company.type))}
        noun={["token", "tokens"]}
        empty={<Dimmed size="sm">Your team has no tokens.</Dimmed>}
        table={{
          caption: "Tokens of the team, newest first",
          end: "Change",
          columns: (one) => ({
            Token: (
              <CellText title={nameOf(one)}>
                {one.user_name}
                {one.name !== null && `, ${KINDS[one.kind] ?? one.kind}`}
              </CellText>
            ),
            "Last used": <LastUsed at={one.last_used_at} />,
            Where: <Uses token={one} />,
            Change: (isOwner || one.user_id === me.id) && <EndToken token={one} />,
          }),
        }}
      />
    </Section>
  );
}

interface TokenProps {
  readonly token: TeamToken;
}

function EndToken({ token }: TokenProps) {
  const { endToken } = useAccessActions();
  const name = nameOf(token);
  return (
    <ConfirmedAction
      label="End"
      button={{ size: "xs", "aria-label": `End the token of ${token.user_name}: ${name}` }}
      title="End this token?"
      action="End the token"
      danger
      onConfirm={() => endToken(token)}
      done="The token is ended."
    >
      Every program that uses <strong>{name}</strong> of {token.user_name} stops working
      immediately, with everything created by it. This cannot be undone.
    </ConfirmedAction>
  );
}

function Uses({ token: { uses } }: TokenProps) {
  const [newest] = uses;
  if (newest === undefined) return "Nowhere yet";
  const addresses = new Set(uses.map(({ ip }) => ip)).size;
  return (
    <details>
      <summary>
        {newest.ip}
        {addresses > 1 && ` and ${counted(addresses - 1, "other")}`}
      </summary>
      <Text size="sm" component="ul">
        {uses.map((use) => (
          <li key={`${use.route} ${use.ip}`}>
            <code>{use.route}</code> from {use.ip}, <Time at={use.last_used_at} />
          </li>
        ))}
      </Text>
    </details>
  );
}
