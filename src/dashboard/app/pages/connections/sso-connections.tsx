import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";

import { useApi } from "../../session/session.tsx";
import { StateBadge } from "../../ui/badges.tsx";
import { Copy } from "../../ui/copy.tsx";
import { ActiveSwitch, ConfirmedAction } from "../../ui/dialog.tsx";
import { FilterBar, useFilters } from "../../ui/filters.tsx";
import { idOf } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { CellText, Dimmed } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { CompanyName, CompanySelect } from "../companies/company-select.tsx";
import { type SsoConnection, ssoConnectionsOptions, useSsoActions } from "./data.ts";
import { SsoForm } from "./sso-form.tsx";

export function SsoConnections() {
  const { get, set, count, clear } = useFilters(["company"]);
  const [editing, setEditing] = useState<SsoConnection | "new">();
  const create = () => setEditing("new");
  const companyId = idOf(get("company"));
  const connections = useList(
    ssoConnectionsOptions(useApi(), companyId === undefined ? {} : { company_id: companyId }),
  );
  return (
    <>
      <Group justify="space-between" mb="md" gap="sm">
        <Text size="sm" c="dimmed" maw={620} flex="1 1 280px">
          People of a company sign in at its own identity provider (OpenID Connect).
        </Text>
        <Button leftSection={<Icon name="plus" size={16} />} onClick={create}>
          New connection
        </Button>
      </Group>
      <FilterBar count={count} onClear={clear}>
        <CompanySelect
          label="Company"
          types={["partner", "account"]}
          placeholder="Every company"
          value={companyId}
          onChange={(company) => set({ company: company && String(company.id) })}
        />
      </FilterBar>
      <TableList
        list={connections}
        noun={["connection", "connections"]}
        empty={<NoConnection isFiltered={count > 0} onCreate={create} />}
        table={{
          caption: "Connections, newest first",
          end: "Actions",
          columns: (one) => ({
            Company: <CellText title={<CompanyName id={one.company_id} />}>{one.issuer}</CellText>,
            State: <StateBadge state={one.is_active ? "active" : "inactive"} />,
            Domains: one.domain_proofs.map(({ domain, proved_at: provedAt }) => (
              <CellText key={domain} title={domain}>
                {provedAt === null ? "No DNS proof" : "Proved by DNS"}
              </CellText>
            )),
            Client: (
              <>
                <code>{one.client_id}</code>
                <Group gap={4} wrap="nowrap">
                  <Dimmed>{one.redirect_uri}</Dimmed>
                  <Copy value={one.redirect_uri} label="Copy the redirect URI" />
                </Group>
              </>
            ),
            Passwords: one.password_login ? "Allowed" : "Not allowed",
            Changed: <Time at={one.updated_at} />,
            Actions: <SsoActions connection={one} onEdit={() => setEditing(one)} />,
          }),
        }}
      />
      <SsoForm editing={editing} onClose={() => setEditing(undefined)} />
    </>
  );
}

interface NoSsoActionsProps {
  readonly isFiltered: boolean;
  readonly onCreate: () => void;
}

function NoConnection({ isFiltered, onCreate }: NoSsoActionsProps) {
  return (
    <EmptyState
      icon="link"
      title={isFiltered ? "This company has no connection" : "No connection yet"}
      action={<Button onClick={onCreate}>New connection</Button>}
    >
      Ask the company for the issuer, the client id and the client secret of an application at its
      identity provider. After the connection is made, give them its redirect URI.
    </EmptyState>
  );
}

interface SsoActionsProps {
  readonly connection: SsoConnection;
  readonly onEdit: () => void;
}

function SsoActions({ connection, onEdit }: SsoActionsProps) {
  const { id, issuer, is_active: isActive } = connection;
  const { setActive, remove } = useSsoActions();
  return (
    <Group gap="xs" justify="flex-end" className="row-actions">
      <Button size="xs" variant="default" onClick={onEdit} aria-label={`Change ${issuer}`}>
        Change
      </Button>
      <ActiveSwitch
        isActive={isActive}
        name={issuer}
        noun="the connection"
        onSwitch={(next) => setActive(id, next)}
        done={`The connection is ${isActive ? "inactive" : "active"}.`}
      >
        {isActive
          ? "Nobody signs in through it until it is active again. Passwords work for its domains, where people have one. Whoever is signed in stays so."
          : "People of its domains sign in through it again, as its settings say."}
      </ActiveSwitch>
      <ConfirmedAction
        label="Delete"
        button={{ size: "xs", variant: "subtle", color: "red", "aria-label": `Delete ${issuer}` }}
        title="Delete the connection?"
        action="Delete"
        danger
        onConfirm={() => remove(id)}
        done="The connection is deleted."
      >
        Its settings, its client secret and the links between its people and the identity provider
        are gone. Whoever is signed in stays so.
      </ConfirmedAction>
    </Group>
  );
}
