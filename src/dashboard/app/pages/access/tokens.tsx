import { Text } from "@mantine/core";
import type { ReactNode } from "react";

import { ConfirmedAction } from "../../ui/dialog.tsx";
import { counted } from "../../ui/format.ts";
import { CellText } from "../../ui/layout.tsx";
import { LastUsed, Time } from "../../ui/time.tsx";
import { scopeWords } from "../keys/client-model.ts";
import { type TeamToken, useAccessActions } from "./data.ts";

const KINDS: Readonly<Record<string, string>> = {
  dashboard_pat: "Personal access token",
  api_pat: "24-hour token",
  impersonation: "Acts as the owner of an account",
};

/** Returns the kind of a token in words. Only the token of an integration, which is no person, has limited scopes. */
const kindOf = ({ kind, scopes }: TeamToken) =>
  kind === "dashboard_pat" && !scopes.includes("*")
    ? "Token of an integration"
    : (KINDS[kind] ?? kind);

const nameOf = (token: TeamToken) => token.name ?? kindOf(token);

/** Returns the cells of a token by column, with a button that revokes it if the user may do so. */
export function tokenColumns(one: TeamToken, mayEnd: boolean): Readonly<Record<string, ReactNode>> {
  return {
    Token: (
      <CellText title={nameOf(one)}>
        {one.user_name}
        {one.name !== null && `, ${kindOf(one)}`}
      </CellText>
    ),
    Access: scopeWords(one.scopes),
    "Last used": <LastUsed at={one.last_used_at} />,
    Where: <Uses token={one} />,
    Expires: one.expires_at === null ? "Never" : <Time at={one.expires_at} mayBeAhead />,
    Actions: mayEnd && <EndToken token={one} />,
  };
}

interface TokenProps {
  readonly token: TeamToken;
}

function EndToken({ token }: TokenProps) {
  const { endToken } = useAccessActions();
  const name = nameOf(token);
  return (
    <ConfirmedAction
      label="Revoke"
      button={{ size: "xs", "aria-label": `Revoke the token of ${token.user_name}: ${name}` }}
      title="Revoke this token?"
      action="Revoke token"
      danger
      onConfirm={() => endToken(token)}
      done="Token revoked."
    >
      Every program that uses <strong>{name}</strong> of {token.user_name} stops working
      immediately, and all tokens created with it are revoked. This cannot be undone.
    </ConfirmedAction>
  );
}

function Uses({ token: { uses } }: TokenProps) {
  const [newest] = uses;
  if (newest === undefined) return "Never used";
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
